use std::{
    collections::VecDeque,
    future::pending,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::time::timeout;

use super::{
    GatewayState::{Draining, Gone, Serving},
    *,
};
use crate::stats::add;

/// A gateway whose answers to probes are scripted; the last one repeats.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Option<GatewayState>>>,
    probes: Mutex<Vec<Instant>>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    traffic: Arc<Traffic>,
}

impl Script {
    /// A gateway that answers probes by these states, `None` by nothing.
    fn new(answers: impl IntoIterator<Item = Option<GatewayState>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    fn health(self: &Arc<Self>) -> Arc<GatewayHealth> {
        let script = Arc::clone(self);
        let ask = move || {
            let script = Arc::clone(&script);
            async move { script.answer().await }.boxed()
        };
        let traffic = Arc::clone(&self.traffic);
        let name = "http://gateway".to_owned();
        GatewayHealth::with_probe(name, Probe(Box::new(ask)), traffic, Arc::default())
    }

    async fn answer(&self) -> Result<GatewayState> {
        self.probes.lock().push(Instant::now());
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.most_in_flight.fetch_max(in_flight, Relaxed);
        let answer = {
            let mut answers = self.answers.lock();
            if answers.len() > 1 {
                answers.pop_front().flatten()
            } else {
                answers.front().copied().flatten()
            }
        };
        let answer = async {
            match answer {
                Some(state) => state,
                None => pending().await,
            }
        };
        let answer = timeout(PROBE_TIMEOUT, answer).await;
        self.in_flight.fetch_sub(1, Relaxed);
        answer.map_err(|_elapsed| Error::new(ErrorKind::Timeout, "http://gateway did not answer within 1s"))
    }

    fn probes(&self) -> usize {
        self.probes.lock().len()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_fail_together_share_a_probe() {
    let script = Script::new([None]);
    let health = script.health();
    assert_eq!(health.state(), Serving);
    let failures = (0..20).map(|_| health.after_failure());
    assert!(
        futures::future::join_all(failures)
            .await
            .iter()
            .all(|found| *found == Gone)
    );
    assert_eq!(script.probes(), 1);
    assert!(!health.serves());
    assert_eq!(health.after_failure().await, Gone, "that is known");
    assert_eq!(script.probes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_answers_stays() {
    let script = Script::new([Some(Serving)]);
    let health = script.health();
    assert_eq!(health.after_failure().await, Serving);
    assert!(health.serves());
    sleep(Duration::from_mins(5)).await;
    assert_eq!(script.probes(), 1, "nothing repeats it");
}

#[tokio::test(start_paused = true)]
async fn a_draining_gateway_gets_no_new_batches_until_it_serves_again() {
    let script = Script::new([Some(Draining), Some(Draining), None, Some(Serving)]);
    let health = script.health();
    assert_eq!(health.after_failure().await, Draining);
    assert!(!health.serves());
    let answer = async {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Error>(7)
    };
    assert_eq!(
        health.wait_for(answer).await.unwrap(),
        7,
        "what is in flight goes on"
    );
    sleep(Duration::from_secs(9)).await;
    assert!(health.serves());
    assert_eq!(script.probes(), 4);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(script.probes(), 4);
}

/// Loading a model can take 20 seconds.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_waited_for_while_probes_are_answered() {
    let script = Script::new([Some(Serving)]);
    let health = script.health();
    let answer = async {
        sleep(Duration::from_secs(20)).await;
        Ok::<_, Error>(7)
    };
    assert_eq!(health.wait_for(answer).await.unwrap(), 7);
    assert!(
        (4..=6).contains(&script.probes()),
        "{} probes in 20 s",
        script.probes()
    );
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_wait_within_five_seconds() {
    let script = Script::new([None]);
    let health = script.health();
    let began = Instant::now();
    let waits = (0..20).map(|number| {
        let health = Arc::clone(&health);
        async move {
            sleep(Duration::from_millis(50 * number)).await;
            health.wait_for(pending::<Result<()>>()).await
        }
    });
    for ended in futures::future::join_all(waits).await {
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Unreachable);
    }
    let took = began.elapsed();
    assert!(
        (Duration::from_secs(4)..Duration::from_millis(5_500)).contains(&took),
        "{took:?}"
    );
    let most = script.most_in_flight.load(Relaxed);
    assert_eq!(most, 1);
    let of_repetition = 2;
    assert!(script.probes() <= 1 + of_repetition, "{} probes", script.probes());
}

/// A probe can be late on a link that is busy with answers.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_sends_is_not_gone() {
    let script = Script::new([None]);
    let health = script.health();
    let sending = async {
        for _ in 0..300 {
            sleep(Duration::from_millis(100)).await;
            add(&script.traffic.received_bytes, 1);
        }
        Ok::<_, Error>(())
    };
    let failing = async {
        sleep(Duration::from_secs(10)).await;
        health.after_failure().await
    };
    let (sent, found) = tokio::join!(health.wait_for(sending), failing);
    sent.unwrap();
    assert_eq!((found, script.probes()), (Serving, 1));
}

/// What a gateway sent before it was killed still arrives.
#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_a_lost_gateway_still_delivers() {
    let script = Script::new([None]);
    let health = script.health();
    assert_eq!(health.after_failure().await, Gone);
    let delivering = async {
        for _ in 0..20 {
            sleep(Duration::from_millis(200)).await;
            add(&script.traffic.received_bytes, 1);
        }
        Ok::<_, Error>(())
    };
    health.wait_for(delivering).await.unwrap();
    assert!(health.wait_for(pending::<Result<()>>()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn slow_rows_may_be_silent_for_longer() {
    let script = Script::new([Some(Serving)]);
    let health = script.health();
    assert_eq!(health.silence.limit(), Duration::from_secs(3), "nothing is known");
    for milliseconds in [100, 2_000, 900] {
        health.observe_rows(Duration::from_millis(milliseconds));
    }
    assert_eq!(health.silence.limit(), Duration::from_secs(9));
    let answer = async {
        sleep(Duration::from_secs(20)).await;
        Ok::<_, Error>(())
    };
    health.wait_for(answer).await.unwrap();
    assert_eq!(script.probes(), 2);
    for _ in 0..100 {
        health.observe_rows(Duration::from_millis(1));
    }
    assert_eq!(health.silence.limit(), Duration::from_secs(3));
}

/// 200 hosts lose their gateway at the same time, for two minutes.
#[tokio::test(start_paused = true)]
async fn many_readers_do_not_probe_in_a_storm() {
    let script = Script::new([None]);
    let readers: Vec<_> = (0..200).map(|_| script.health()).collect();
    let began = Instant::now();
    let failures = readers.iter().map(GatewayHealth::after_failure);
    futures::future::join_all(failures).await;
    sleep(Duration::from_mins(2)).await;
    let mut by_second = [0_usize; 122];
    for probe in &*script.probes.lock() {
        let second = usize::try_from((*probe - began).as_secs()).unwrap();
        by_second[second.min(121)] += 1;
    }
    assert_eq!(by_second[0], 200, "each reader has one probe at once");
    assert!(by_second.iter().all(|probes| *probes <= 200), "{by_second:?}");
    let later = &by_second[60..120];
    assert!(later.iter().all(|probes| *probes <= 40), "{later:?}");
    let per_minute: usize = later.iter().sum();
    assert!(
        (300..=900).contains(&per_minute),
        "{per_minute} probes in a minute"
    );
    // It is back: all of them know that within 31 seconds.
    *script.answers.lock() = VecDeque::from([Some(Serving)]);
    sleep(Duration::from_secs(32)).await;
    assert!(readers.iter().all(GatewayHealth::serves));
    let probes = script.probes();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(script.probes(), probes, "nothing is repeated any more");
}

#[tokio::test(start_paused = true)]
async fn the_repetition_ends_with_the_store() {
    let script = Script::new([None]);
    let health = script.health();
    health.after_failure().await;
    drop(health);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(script.probes(), 1);
}

/// A store outlives the runtime of a reader.
#[test]
fn another_runtime_takes_over_the_repetition() {
    let script = Script::new([None, Some(Serving)]);
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let health = runtime().block_on(async {
        let health = script.health();
        health.after_failure().await;
        health
    });
    assert_eq!(health.state(), Gone);
    runtime().block_on(async {
        assert!(!health.serves());
        sleep(Duration::from_secs(2)).await;
        assert!(health.serves());
    });
}
