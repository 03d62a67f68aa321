//! A client with low CPU cost: sends prepared requests over persistent connections, and discards the bodies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Timeout of a read or write, to detect a server that hangs.
const IO_TIMEOUT: Duration = Duration::from_mins(2);
const BUFFER_BYTES: usize = 256 << 10;

/// An HTTP/1.1 connection for prepared requests.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Length of the body.
    pub bytes: u64,
}

/// Several connections that share the requests of one list.
#[derive(Debug)]
pub struct Load {
    connections: Vec<Connection>,
    requests: Vec<Vec<u8>>,
    expected_bytes: u64,
}

impl Load {
    /// Connects `connections` times to `address`. Every response must be 200 with a body of `expected_bytes`.
    pub fn new(
        address: SocketAddr,
        connections: usize,
        requests: Vec<Vec<u8>>,
        expected_bytes: u64,
    ) -> Result<Self> {
        ensure!(!requests.is_empty(), "the list of requests is empty");
        let connections = (0..connections)
            .map(|_| Connection::open(address))
            .collect::<Result<_>>()?;
        Ok(Self {
            connections,
            requests,
            expected_bytes,
        })
    }

    /// Sends `count` requests, cycling through the list; each connection sends one request at a time.
    pub fn send(&mut self, count: u32) -> Result<()> {
        let (requests, step) = (&self.requests, self.connections.len());
        let expected = Response {
            status: 200,
            bytes: self.expected_bytes,
        };
        let send_part = |start: usize, connection: &mut Connection| -> Result<()> {
            for index in (start..count as usize).step_by(step) {
                let response = connection.exchange(&requests[index % requests.len()])?;
                ensure!(
                    response == expected,
                    "expected status 200 and {} bytes, found {response:?}",
                    expected.bytes
                );
            }
            Ok(())
        };
        thread::scope(|scope| {
            let connections = self.connections.iter_mut().enumerate();
            let threads: Vec<_> = connections
                .map(|(start, connection)| scope.spawn(move || send_part(start, connection)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
        })
    }
}

impl Connection {
    /// Connects to `address`.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IO_TIMEOUT))?;
        stream.set_write_timeout(Some(IO_TIMEOUT))?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Sends a request without a body, and reads the whole response. The response must have a `Content-Length`.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        self.stream.write_all(request)?;
        self.read_response()
    }

    /// Sends a request with a body of `length` zeros, generated while it is sent.
    pub fn upload(&mut self, head: &[u8], length: u64) -> Result<Response> {
        self.stream.write_all(head)?;
        std::io::copy(&mut std::io::repeat(0).take(length), &mut self.stream)?;
        self.read_response()
    }

    fn read_response(&mut self) -> Result<Response> {
        let mut filled = 0;
        let end = loop {
            let read = self
                .stream
                .read(&mut self.buffer[filled..])
                .context("no response")?;
            ensure!(
                read > 0,
                "the connection was closed before the end of the response head"
            );
            filled += read;
            if let Some(end) = self.buffer[..filled]
                .windows(4)
                .position(|bytes| bytes == b"\r\n\r\n")
            {
                break end + 4;
            }
            ensure!(
                filled < BUFFER_BYTES,
                "the response head is longer than {BUFFER_BYTES} bytes"
            );
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]);
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .context("the response has no status")?;
        let bytes: u64 = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .context("the response has no content-length")?
            .1
            .trim()
            .parse()?;
        let mut remaining = bytes.saturating_sub((filled - end) as u64);
        while remaining > 0 {
            let chunk_bytes = usize::try_from(remaining)
                .unwrap_or(BUFFER_BYTES)
                .min(BUFFER_BYTES);
            let read = self
                .stream
                .read(&mut self.buffer[..chunk_bytes])
                .context("the body stalled")?;
            ensure!(read > 0, "the body ended {remaining} bytes early");
            remaining -= read as u64;
        }
        Ok(Response { status, bytes })
    }
}

#[cfg(test)]
mod tests {
    use pushdown_testkit::ScriptedOrigin;

    use super::*;

    #[test]
    fn responses_are_read_whole_and_checked() {
        let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "seven b")).unwrap();
        let requests = vec![b"GET / HTTP/1.1\r\n\r\n".to_vec()];
        let mut load = Load::new(origin.address(), 2, requests.clone(), 7).unwrap();
        load.send(5).unwrap();
        assert_eq!(origin.requests().len(), 5);
        let mut load = Load::new(origin.address(), 1, requests, 8).unwrap();
        assert!(load.send(1).unwrap_err().to_string().contains("8 bytes"));
    }
}
