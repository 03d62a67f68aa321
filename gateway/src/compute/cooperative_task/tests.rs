use std::num::NonZeroUsize;

use tokio::sync::oneshot;

use super::*;
use crate::compute::Ledger;

fn pool() -> CpuPool {
    CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap()
}

fn task(pool: &CpuPool) -> CooperativeTask {
    CooperativeTask::new(pool.clone(), Tenant::default()).unwrap()
}

#[tokio::test]
async fn a_waiting_task_has_no_thread() {
    let pool = pool();
    let mut task = task(&pool);
    let waker = task.waker();
    let (send, receive) = oneshot::channel();
    let running = task.run(async move { receive.await.unwrap() });
    let others = async {
        // The only thread is free for other work.
        for number in 0..10 {
            assert_eq!(
                pool.run(&Tenant::default().position_now(), move || number)
                    .await
                    .unwrap(),
                number
            );
        }
        send.send(7).unwrap();
        waker.wake();
    };
    assert_eq!(tokio::join!(running, others).0.unwrap(), 7);
}

#[tokio::test]
async fn yielding_futures_and_spawned_tasks_run_to_completion() {
    let pool = pool();
    let mut task = task(&pool);
    let sum = task.run(async {
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
    assert_eq!(task.run(async { 8 }).await.unwrap(), 8);
    assert!(task.compute_time() > Duration::ZERO);
}

#[tokio::test]
async fn an_endless_task_leaves_time_for_others_and_ends_when_dropped() {
    let pool = pool();
    let mut task = task(&pool);
    let (owned, mut dropped) = oneshot::channel::<()>();
    let endless = task.run(async move {
        let _owned = owned;
        loop {
            tokio::task::yield_now().await;
        }
    });
    let others = async {
        for number in 0..5 {
            assert_eq!(
                pool.run(&Tenant::default().position_now(), move || number)
                    .await
                    .unwrap(),
                number
            );
        }
    };
    tokio::select! {
        () = others => {}
        never = endless => never.unwrap(),
    }
    // The only thread is free again.
    pool.run(&Tenant::default().position_now(), || ()).await.unwrap();
    assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

#[tokio::test]
async fn a_panic_is_an_error_of_this_and_all_later_runs() {
    let pool = pool();
    let mut task = task(&pool);
    for future in [async { panic!("broken") }.boxed(), async {}.boxed()] {
        let error = task.run(future).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
    pool.run(&Tenant::default().position_now(), || ()).await.unwrap();
}

#[tokio::test]
async fn dropping_the_task_drops_its_future() {
    let pool = pool();
    let mut task = task(&pool);
    let (owned, dropped) = oneshot::channel::<()>();
    {
        let running = task.run(async move {
            let _owned = owned;
            std::future::pending::<()>().await;
        });
        let running = tokio::time::timeout(Duration::from_millis(50), running);
        assert!(running.await.is_err());
    }
    assert!(dropped.await.is_err());
}
