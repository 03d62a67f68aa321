//! Opens connections: the handshake of TLS, and a look at the first bytes of a request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
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

/// A stream, the first bytes of which were read before.
#[derive(Debug)]
pub(super) struct Reread<T> {
    first: Bytes,
    io: T,
}

/// An open connection whose first bytes are known.
#[derive(Debug)]
pub(super) struct Opened {
    /// It begins with these bytes.
    pub(super) stream: Reread<ClientStream>,
    /// Whether it begins with a request for the path of probes.
    pub(super) is_probe: bool,
}

/// Opens a connection, with TLS if `tls` is set.
pub(super) async fn open(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    limit: Arc<StallLimit>,
) -> io::Result<Reread<ClientStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot disable Nagle's algorithm");
    }
    let stream = StallDetector::new(stream, limit);
    let io = match tls {
        None => Either::Left(stream),
        Some(tls) => Either::Right(tls.accept(stream).await?),
    };
    Ok(Reread {
        first: Bytes::new(),
        io,
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
    let mut stream = open(stream, tls, limit).await?;
    let longest = PROBE_METHODS.iter().map(|method| method.len()).max();
    let mut bytes = vec![0; longest.unwrap_or_default() + path.len() + 1];
    let mut length = 0;
    let is_probe = loop {
        if let Some(is_probe) = is_probe(&bytes[..length], path) {
            break is_probe;
        }
        match stream.io.read(&mut bytes[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
    };
    bytes.truncate(length);
    stream.first = bytes.into();
    Ok(Opened { stream, is_probe })
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

impl<T: AsyncRead + Unpin> AsyncRead for Reread<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buffer);
        }
        let count = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..count]);
        self.first.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Reread<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
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

    #[tokio::test]
    async fn what_was_read_is_read_again() {
        let (mut near, far) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut near, b" and the rest")
            .await
            .unwrap();
        drop(near);
        let mut stream = Reread {
            first: Bytes::from_static(b"the beginning"),
            io: far,
        };
        let mut bytes = vec![0; 4];
        stream.read_exact(&mut bytes).await.unwrap();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"the beginning and the rest");
    }
}
