//! Certificates of an authority of the tests, and both ends of TLS.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector, rustls::server::Acceptor};

/// An authority, and its certificate in a file.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("ca.pem"), issuer.pem())?;
        Ok(Self { issuer, folder })
    }

    /// The file with its certificate.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Writes a certificate for these names, and its key.
    pub(super) fn issue(&self, names: &[&str]) -> Result<(PathBuf, PathBuf)> {
        let key = KeyPair::generate()?;
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        let files = ["certificate.pem", "key.pem"].map(|name| self.folder.path().join(name));
        fs::write(&files[0], certificate.pem())?;
        fs::write(&files[1], key.serialize_pem())?;
        let [certificate, key] = files;
        Ok((certificate, key))
    }
}

/// TLS in front of a store, which records the names that clients ask for.
pub(super) struct TlsFront {
    address: SocketAddr,
    names: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl TlsFront {
    /// Serves with a certificate for these names.
    pub(super) fn start(store: SocketAddr, authority: &Authority, names: &[&str]) -> Result<Self> {
        let (certificate, key) = authority.issue(names)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(certificate)?],
                PrivateKeyDer::from_pem_file(key)?,
            )?;
        let config = Arc::new(config);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let recorder = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, recorder) = (Arc::clone(&config), Arc::clone(&recorder));
                tokio::spawn(async move {
                    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
                    let name = start.client_hello().server_name().unwrap_or("none").to_owned();
                    recorder.lock().push(name);
                    let mut client = start.into_stream(config).await?;
                    let mut store = TcpStream::connect(store).await?;
                    copy_bidirectional(&mut client, &mut store).await
                });
            }
        });
        Ok(Self {
            address,
            names: asked,
            _runtime: runtime,
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The names that clients have asked for.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.lock().clone()
    }
}

/// Sends a request over TLS on a new connection, and reads until the server closes it.
pub(super) fn ask(address: SocketAddr, name: &str, ca: &Path, request: &[u8]) -> Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        stream.write_all(request).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8(answer)?)
    };
    let limited = async { tokio::time::timeout(Duration::from_secs(20), exchange).await };
    runtime.block_on(limited).context("no answer")?
}
