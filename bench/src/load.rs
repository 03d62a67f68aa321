//! A client that costs little: prepared requests over kept connections, bodies read and thrown away.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// A read that takes longer has met something that hangs.
const PATIENCE: Duration = Duration::from_mins(2);
const BUFFER: usize = 256 << 10;

/// An HTTP/1.1 connection for prepared requests.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Several connections that send the same list of requests between them.
#[derive(Debug)]
pub struct Load {
    connections: Vec<Connection>,
    requests: Vec<Vec<u8>>,
    expected: u64,
}

// === impl Load ===

impl Load {
    /// Connects `connections` times to `address`. Every answer is to be 200 with `expected` bytes.
    pub fn new(
        address: SocketAddr,
        connections: usize,
        requests: Vec<Vec<u8>>,
        expected: u64,
    ) -> Result<Self> {
        ensure!(!requests.is_empty(), "there is nothing to send");
        let connections = (0..connections)
            .map(|_| Connection::open(address))
            .collect::<Result<_>>()?;
        Ok(Self {
            connections,
            requests,
            expected,
        })
    }

    /// Sends `count` requests, in turn from the list, each connection one after the other.
    pub fn send(&mut self, count: u32) -> Result<()> {
        let (requests, expected, step) = (&self.requests, self.expected, self.connections.len());
        let share = |start: usize, connection: &mut Connection| -> Result<()> {
            for index in (start..count as usize).step_by(step) {
                let answer = connection.exchange(&requests[index % requests.len()])?;
                ensure!(
                    answer
                        == Answer {
                            status: 200,
                            bytes: expected
                        },
                    "expected 200 and {expected} bytes, found {answer:?}"
                );
            }
            Ok(())
        };
        thread::scope(|scope| {
            let shares = self.connections.iter_mut().enumerate();
            let shares: Vec<_> = shares
                .map(|(start, connection)| scope.spawn(move || share(start, connection)))
                .collect();
            shares
                .into_iter()
                .try_for_each(|share| share.join().unwrap_or_else(|_| bail!("a client panicked")))
        })
    }
}

// === impl Connection ===

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER],
        })
    }

    /// Sends a request that is all head, and reads the answer to its end. Only answers with a length are understood.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request)?;
        self.answer()
    }

    /// Sends a request whose body of `length` bytes, all zero, is made while it is sent.
    pub fn upload(&mut self, head: &[u8], length: u64) -> Result<Answer> {
        self.stream.write_all(head)?;
        std::io::copy(&mut std::io::repeat(0).take(length), &mut self.stream)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut filled = 0;
        let end = loop {
            let read = self
                .stream
                .read(&mut self.buffer[filled..])
                .context("no answer")?;
            ensure!(read > 0, "the connection was closed before the end of a head");
            filled += read;
            if let Some(end) = self.buffer[..filled]
                .windows(4)
                .position(|bytes| bytes == b"\r\n\r\n")
            {
                break end + 4;
            }
            ensure!(filled < BUFFER, "the head has no end");
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]);
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .context("no status")?;
        let bytes: u64 = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .context("no content-length")?
            .1
            .trim()
            .parse()?;
        let mut rest = bytes.saturating_sub((filled - end) as u64);
        while rest > 0 {
            let room = usize::try_from(rest).unwrap_or(BUFFER).min(BUFFER);
            let read = self
                .stream
                .read(&mut self.buffer[..room])
                .context("the body stopped")?;
            ensure!(read > 0, "the body was cut {rest} bytes before its end");
            rest -= read as u64;
        }
        Ok(Answer { status, bytes })
    }
}

#[cfg(test)]
mod tests {
    use pushdown_testkit::ScriptedOrigin;

    use super::*;

    #[test]
    fn answers_are_read_to_their_end_and_judged() {
        let origin = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "seven b")).unwrap();
        let requests = vec![b"GET / HTTP/1.1\r\n\r\n".to_vec()];
        let mut load = Load::new(origin.address(), 2, requests.clone(), 7).unwrap();
        load.send(5).unwrap();
        assert_eq!(origin.requests().len(), 5);
        let mut load = Load::new(origin.address(), 1, requests, 8).unwrap();
        assert!(load.send(1).unwrap_err().to_string().contains("8 bytes"));
    }
}
