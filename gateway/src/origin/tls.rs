//! TLS of connections to the store: the trusted certificate authorities.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// The TLS configuration of a connector. If all its stores are plain http, no authority is read or trusted. The file `ca` comes from
/// `setting`.
pub(super) fn client(https: bool, ca: Option<&Path>, setting: &str) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(match (https, ca) {
        (false, _) => builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
        (true, None) => builder.with_native_roots()?.with_no_client_auth(),
        (true, Some(file)) => builder
            .with_root_certificates(authorities(file, setting)?)
            .with_no_client_auth(),
    })
}

fn authorities(file: &Path, setting: &str) -> io::Result<RootCertStore> {
    let fault = |cause: String| io::Error::other(format!("{setting} {}: {cause}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| fault(error.to_string()))? {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fault("expected a certificate, found none".to_owned()));
    }
    Ok(roots)
}
