//! A link with a known rate.

use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A link in front of a server, whose rate from the server to the client can be set.
#[derive(Debug, Clone)]
pub struct Throttle {
    bytes_per_second: Arc<AtomicU64>,
    /// When the link can send the next bytes.
    free_at: Arc<Mutex<Instant>>,
    /// Bytes sent to the client.
    bytes_passed: Arc<AtomicU64>,
}

impl Throttle {
    /// Starts an unlimited link to the server, and returns its address for clients.
    pub fn start(server: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let throttle = Self {
            bytes_per_second: Arc::default(),
            free_at: Arc::new(Mutex::new(Instant::now())),
            bytes_passed: Arc::default(),
        };
        let link = throttle.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                // Without a server the link ends, and refuses further connections.
                if client.and_then(|client| link.connect(client, server)).is_err() {
                    return;
                }
            }
        });
        Ok((throttle, address))
    }

    /// Sets the rate; 0 is unlimited.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Relaxed);
    }

    /// The number of bytes sent to clients so far.
    pub fn bytes_passed(&self) -> u64 {
        self.bytes_passed.load(Relaxed)
    }

    fn connect(&self, client: TcpStream, server: SocketAddr) -> io::Result<()> {
        let server = TcpStream::connect(server)?;
        // With Nagle's algorithm the last piece of an answer waits for an acknowledgement, and the link looks slow.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (up, down) = (client.try_clone()?, server.try_clone()?);
        let link = self.clone();
        thread::spawn(move || copy(up, server, |_| ()));
        thread::spawn(move || copy(down, client, |bytes| link.wait(bytes)));
        Ok(())
    }

    fn wait(&self, bytes: usize) {
        self.bytes_passed.fetch_add(bytes as u64, Relaxed);
        let rate = self.bytes_per_second.load(Relaxed);
        let Some(nanos) = (bytes as u64 * 1_000_000_000).checked_div(rate) else {
            return;
        };
        let until = {
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(Instant::now()) + Duration::from_nanos(nanos);
            *free_at
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// Copies until either end closes its connection.
fn copy(mut from: TcpStream, mut to: TcpStream, wait: impl Fn(usize)) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        wait(read);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
