//! Opens connections: the handshake of TLS, and a look at the first bytes of a request.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tracing::debug;

use super::connection::StallLimit;
use super::stall::StallDetector;

/// The methods of probes, each with the space after it.
const PROBE_METHODS: [&str; 2] = ["GET ", "HEAD "];

/// A connection, after the handshake if it has TLS.
pub(super) type ClientStream = Either<StallDetector<TcpStream>, TlsStream<StallDetector<TcpStream>>>;

/// An open connection.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: ClientStream,
    /// The bytes that were read from it, which requests begin with.
    pub(super) first: Bytes,
}

impl Opened {
    /// Whether it begins with a request for `path`, if that was looked for.
    pub(super) fn is_probe(&self, path: &str) -> bool {
        is_probe(&self.first, path) == Some(true)
    }
}

/// Opens a connection, with TLS if `tls` is set.
pub(super) async fn open(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    limit: Arc<StallLimit>,
) -> io::Result<Opened> {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot disable Nagle's algorithm");
    }
    let stream = StallDetector::new(stream, limit);
    let stream = match tls {
        None => Either::Left(stream),
        Some(tls) => Either::Right(tls.accept(stream).await?),
    };
    Ok(Opened {
        stream,
        first: Bytes::new(),
    })
}

/// Opens a connection, and reads until it is known whether it begins with a request for `path`: at most one byte more than that
/// takes, so that a connection that waits for a slot costs no memory.
pub(super) async fn open_and_look(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    limit: Arc<StallLimit>,
    path: &str,
) -> io::Result<Opened> {
    let mut opened = open(stream, tls, limit).await?;
    let longest = PROBE_METHODS.iter().map(|method| method.len()).max();
    let mut bytes = vec![0; longest.unwrap_or_default() + path.len() + 1];
    let mut length = 0;
    while is_probe(&bytes[..length], path).is_none() {
        match opened.stream.read(&mut bytes[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
    }
    bytes.truncate(length);
    opened.first = bytes.into();
    Ok(opened)
}

/// Whether a request that begins with these bytes is for `path`. `None` if more bytes decide.
fn is_probe(bytes: &[u8], path: &str) -> Option<bool> {
    let mut is_undecided = false;
    for method in PROBE_METHODS {
        let mut line = method.bytes().chain(path.bytes());
        if bytes
            .iter()
            .all(|byte| line.next().is_none_or(|expected| expected == *byte))
        {
            match bytes.get(method.len() + path.len()) {
                Some(b' ' | b'?') => return Some(true),
                Some(_) => {}
                None => is_undecided = true,
            }
        }
    }
    (!is_undecided).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_known_by_its_first_bytes() {
        for (line, expected) in [
            ("GET /probe HTTP/1.1", true),
            ("HEAD /probe HTTP/1.1", true),
            ("HEAD /probe?a=b HTTP/1.1", true),
            ("POST /probe HTTP/1.1", false),
            ("HEAD /probes HTTP/1.1", false),
            ("GET /probe/ HTTP/1.1", false),
            ("GET /prober HTTP/1.1", false),
            ("GET http://gateway/probe HTTP/1.1", false),
            ("get /probe HTTP/1.1", false),
            ("\r\nGET /probe HTTP/1.1", false),
        ] {
            let verdicts = (0..=line.len()).map(|length| is_probe(&line.as_bytes()[..length], "/probe"));
            let known: Vec<_> = verdicts.flatten().collect();
            assert!(
                !known.is_empty() && known.iter().all(|known| *known == expected),
                "{line}"
            );
            assert_eq!(
                is_probe(&line.as_bytes()[..1], "/probe").is_none(),
                line.starts_with(['G', 'H'])
            );
        }
    }
}
