use std::num::NonZeroUsize;

use tokio::sync::oneshot;

use super::*;
use crate::compute::Ledger;

fn pool() -> CpuPool {
    CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap()
}

fn turns(pool: &CpuPool) -> Turns {
    Turns::new(pool.clone(), Tenant::default()).unwrap()
}

#[tokio::test]
async fn who_waits_has_no_thread() {
    let pool = pool();
    let mut turns = turns(&pool);
    let awake = turns.awake();
    let (send, receive) = oneshot::channel();
    let running = turns.run(async move { receive.await.unwrap() });
    let others = async {
        // The only thread is free for them.
        for number in 0..10 {
            assert_eq!(
                pool.run(&Tenant::default().now(), move || number).await.unwrap(),
                number
            );
        }
        send.send(7).unwrap();
        awake.wake();
    };
    assert_eq!(tokio::join!(running, others).0.unwrap(), 7);
}

#[tokio::test]
async fn what_gives_way_and_what_is_spawned_goes_on_in_its_turn() {
    let pool = pool();
    let mut turns = turns(&pool);
    let sum = turns.run(async {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..1000 {
                tokio::task::yield_now().await;
                sender.send(number).await.unwrap();
            }
        });
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            tokio::task::yield_now().await;
            sum += number;
        }
        sum
    });
    assert_eq!(sum.await.unwrap(), 499_500);
    assert_eq!(turns.run(async { 8 }).await.unwrap(), 8);
    assert!(turns.spent() > Duration::ZERO);
}

#[tokio::test]
async fn what_never_waits_leaves_others_their_turns_and_ends_when_it_is_dropped() {
    let pool = pool();
    let mut turns = turns(&pool);
    let (kept, mut gone) = oneshot::channel::<()>();
    let endless = turns.run(async move {
        let _kept = kept;
        loop {
            tokio::task::yield_now().await;
        }
    });
    let others = async {
        for number in 0..5 {
            assert_eq!(
                pool.run(&Tenant::default().now(), move || number).await.unwrap(),
                number
            );
        }
    };
    tokio::select! {
        () = others => {}
        never = endless => never.unwrap(),
    }
    // The only thread is free again.
    pool.run(&Tenant::default().now(), || ()).await.unwrap();
    assert_eq!(gone.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

#[tokio::test]
async fn a_panic_is_an_error_now_and_later() {
    let pool = pool();
    let mut turns = turns(&pool);
    for future in [async { panic!("broken") }.boxed(), async {}.boxed()] {
        let error = turns.run(future).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
    pool.run(&Tenant::default().now(), || ()).await.unwrap();
}

#[tokio::test]
async fn dropping_it_drops_what_waits() {
    let pool = pool();
    let mut turns = turns(&pool);
    let (kept, gone) = oneshot::channel::<()>();
    {
        let running = turns.run(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        let running = tokio::time::timeout(Duration::from_millis(50), running);
        assert!(running.await.is_err());
    }
    assert!(gone.await.is_err());
}
