//! Plans that follow what happens.

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

use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use pushdown_client::{Batch, Mode};

use super::{
    relay::{Deed, relay},
    world::{Objects, World, assert_same, flat, reader, rows, run},
};

const PIPELINE: &str = "decode | resize(32, 32) | to_tensor";
const KEY: &str = "large.bmp";

/// A bitmap of 256 x 256 pixels: 197 KB, of which the pipeline leaves 3.
fn bitmap() -> Objects {
    let pixels = 256 * 256 * 3_u32;
    let mut file = b"BM".to_vec();
    for word in [54 + pixels, 0, 54, 40, 256, 256] {
        file.extend(word.to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    for word in [0, pixels, 2835, 2835, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend((0..pixels).map(|byte| u8::try_from(byte.wrapping_mul(2_654_435_761) >> 24).unwrap()));
    Objects::from([(KEY.to_owned(), file)])
}

/// A link in front of a server: what comes down passes at a rate that can be changed, 0 for any.
#[derive(Clone)]
struct Throttle {
    bytes_per_second: Arc<AtomicU64>,
    /// When the link is free again.
    free: Arc<Mutex<Instant>>,
}

impl Throttle {
    fn start(server: SocketAddr) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let throttle = Self {
            bytes_per_second: Arc::default(),
            free: Arc::new(Mutex::new(Instant::now())),
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

    fn set(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Relaxed);
    }

    fn wait(&self, bytes: usize) {
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

/// The link becomes thin in the middle of an epoch: what was read as it is before is pushed down then. Every sample comes
/// once, with the value of plain reading, whichever way.
#[test]
fn a_plan_follows_the_link() {
    let world = World::with(bitmap());
    let expected = rows(world.reader(PIPELINE).keys([KEY]).mode(Mode::Plain));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    run(async {
        let builder = reader(&format!("http://{address}"), PIPELINE)
            .keys(vec![KEY; 800])
            .mode(Mode::Auto)
            .batch_size(32)
            .requests(2)
            .prefetch_bytes(0);
        let mut reader = builder.build().await.unwrap();
        assert!(
            reader.plan().is_none(),
            "nothing is known before anything was read"
        );
        let mut batches: Vec<Batch> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
            if batches.len() == 10 {
                assert!(reader.plan().is_some());
                throttle.set(4 << 20);
            }
        }
        let planned = reader.plan().unwrap();
        let decision = &planned.decision;
        assert!(decision.tiers.link_bytes < 8e6, "{planned}");
        assert!(decision.plan.shares[0][0] < 0.05, "{planned}");
        assert!(planned.samples_per_second() > planned.plainly(), "{planned}");
        assert!(planned.to_string().contains("% up to `"), "{planned}");
        let last = batches.last().unwrap().rows().iter();
        let plainly = last.filter(|row| row.stage == 0).count();
        assert!(plainly <= 2, "{plainly} of 32");
        let rows = flat(batches);
        assert_eq!(rows.len(), 800);
        for (position, row) in rows.iter().enumerate() {
            assert_eq!((row.index, row.position), (position, position as u64));
            assert!(
                row.value == expected[0].value,
                "bit for bit at stage {}",
                row.stage
            );
        }
        // No more values than are stored, even while nothing was known.
        assert!(reader.stats().value_bytes <= 800 * 197_000);
    });
}

/// A plan never does worse than plain reading, so that it takes that way when there is no other.
#[test]
fn without_a_gateway_auto_reads_plainly() {
    let world = World::with_photos(12);
    let expected = rows(world.reader(PIPELINE).mode(Mode::Plain));
    for deed in [Deed::OtherEngine, Deed::Unknown] {
        let relay = relay(world.gateway.listen(), move |_| deed);
        run(async {
            let builder = reader(&format!("http://{}", relay.address()), PIPELINE);
            let mut reader = builder.mode(Mode::Auto).batch_size(3).build().await.unwrap();
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            assert_same(&flat(batches), &expected);
            assert_eq!(reader.mode(), Mode::Plain, "{deed:?}");
            assert_eq!(reader.stats().retries, 0);
        });
    }
}
