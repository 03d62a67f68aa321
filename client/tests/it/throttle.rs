//! A link whose rate is known.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// A link in front of a server: what comes down passes at a rate that can be changed, 0 for any.
#[derive(Clone)]
pub(super) struct Throttle {
    bytes_per_second: Arc<AtomicU64>,
    /// When the link is free again.
    free: Arc<Mutex<Instant>>,
    /// Bytes that have come down.
    passed: Arc<AtomicU64>,
}

impl Throttle {
    pub(super) fn start(server: SocketAddr) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let throttle = Self {
            bytes_per_second: Arc::default(),
            free: Arc::new(Mutex::new(Instant::now())),
            passed: Arc::default(),
        };
        let this = throttle.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (this, client) = (this.clone(), client.unwrap());
                let server = TcpStream::connect(server).unwrap();
                // Without it the last piece of an answer waits for an acknowledgement, and the link seems slow.
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || pass(up, server, |_| ()));
                thread::spawn(move || pass(down, client, |bytes| this.wait(bytes)));
            }
        });
        (throttle, address)
    }

    pub(super) fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Relaxed);
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Relaxed)
    }

    fn wait(&self, bytes: usize) {
        self.passed.fetch_add(bytes as u64, Relaxed);
        let rate = self.bytes_per_second.load(Relaxed);
        let Some(nanos) = (bytes as u64 * 1_000_000_000).checked_div(rate) else {
            return;
        };
        let until = {
            let mut free = self.free.lock();
            *free = (*free).max(Instant::now()) + Duration::from_nanos(nanos);
            *free
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// Copies until either end is gone.
fn pass(mut from: TcpStream, mut to: TcpStream, wait: impl Fn(usize)) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        wait(read);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _gone = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
