use std::sync::mpsc;

use tokio::sync::oneshot;

use super::*;

fn pool() -> CpuPool {
    CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap()
}

fn tenant(name: &str) -> QueuePosition {
    Tenant::from_access_key(Some(name)).position_now()
}

/// Blocks the pool's thread until the returned sender sends.
async fn block(pool: &CpuPool) -> mpsc::Sender<()> {
    let (release, blocked) = mpsc::channel();
    let (started, starts) = oneshot::channel();
    let work = move || {
        started.send(()).unwrap();
        blocked.recv().unwrap();
    };
    pool.run_shared([tenant("blocker")], work);
    starts.await.unwrap();
    release
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_pool_continues() {
    let pool = pool();
    let error = pool
        .run(&Tenant::default().position_now(), || panic!("broken"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(
        pool.run(&Tenant::default().position_now(), || 7).await.unwrap(),
        7
    );
}

#[tokio::test]
async fn dropped_work_is_not_run() {
    let pool = pool();
    let release = block(&pool).await;
    let (ran, runs) = mpsc::channel();
    {
        let position = Tenant::default().position_now();
        let waiting = pool.run(&position, move || ran.send(()).is_ok());
        tokio::pin!(waiting);
        // Polled once, so that it is queued, then dropped.
        assert!(futures::poll!(&mut waiting).is_pending());
    }
    // Dropped at once, and not only when the work would have been scheduled.
    assert_eq!(runs.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    release.send(()).unwrap();
    pool.run(&Tenant::default().position_now(), || ()).await.unwrap();
}

#[tokio::test]
async fn running_work_notices_that_its_future_was_dropped() {
    let pool = pool();
    let (started, starts) = oneshot::channel();
    let (stopped, stops) = oneshot::channel();
    {
        let position = Tenant::default().position_now();
        let work = move |is_awaited: &(dyn Fn() -> bool + Sync)| {
            started.send(is_awaited()).unwrap();
            while is_awaited() {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        };
        let running = pool.run_while_awaited(&position, work);
        tokio::pin!(running);
        assert!(futures::poll!(&mut running).is_pending());
        assert!(starts.await.unwrap(), "the future exists");
    }
    stops.await.unwrap();
    assert_eq!(
        pool.run(&Tenant::default().position_now(), || 7).await.unwrap(),
        7
    );
}

#[tokio::test]
async fn a_work_item_waits_for_at_most_one_of_another_tenant() {
    let pool = pool();
    let release = block(&pool).await;
    let (ran, order) = mpsc::channel();
    let names = [vec!["many"; 20], vec!["one"]].concat();
    let runs = names.into_iter().map(|name| {
        let (pool, ran) = (pool.clone(), ran.clone());
        async move { pool.run(&tenant(name), move || ran.send(name).unwrap()).await }
    });
    let runs = futures::future::join_all(runs);
    tokio::pin!(runs);
    assert!(futures::poll!(&mut runs).is_pending());
    release.send(()).unwrap();
    for run in runs.await {
        run.unwrap();
    }
    let order: Vec<_> = order.try_iter().collect();
    assert_eq!(order.len(), 21);
    assert_eq!(order.iter().position(|name| *name == "one"), Some(1));
}

#[tokio::test]
async fn shared_work_runs_once_for_the_first_scheduled_tenant() {
    let pool = pool();
    let release = block(&pool).await;
    let (ran, order) = mpsc::channel();
    let record = |name: &'static str| {
        let ran = ran.clone();
        move || ran.send(name).unwrap()
    };
    for _ in 0..3 {
        pool.run_shared([tenant("a")], record("a"));
    }
    pool.run_shared([tenant("a"), tenant("b")], record("both"));
    release.send(()).unwrap();
    pool.run(&tenant("a"), || ()).await.unwrap();
    assert_eq!(order.try_iter().collect::<Vec<_>>(), ["a", "both", "a", "a"]);
}
