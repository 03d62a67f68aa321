//! Samples of several requests, by a clock that stands still while anything runs.

use std::num::NonZeroUsize;

use futures::future::join_all;
use pushdown::{
    DType, Layout, Pipeline,
    step::model::{Model, ModelFiles, ModelResolver, Runtime, WeightSource},
};
use serde_json::json;
use tokio::time::sleep;

use super::*;

/// The most that a sample may wait for others.
const MOST: Duration = Duration::from_millis(2);

/// Weights that are nowhere, so that every sample fails, in its turn and with the model's name.
#[derive(Debug)]
struct Nowhere;

impl WeightSource for Nowhere {
    fn fetch(&self) -> pushdown::Result<ModelFiles> {
        let kind = pushdown::ErrorKind::InvalidModel;
        Err(pushdown::Error::new(kind, "nowhere"))
    }

    fn runtime(&self) -> pushdown::Result<Runtime> {
        let kind = pushdown::ErrorKind::ModelRuntime;
        Err(pushdown::Error::new(kind, "none"))
    }
}

/// Whatever it is called.
#[derive(Debug)]
struct One(Arc<Model>);

impl ModelResolver for One {
    fn find(&self, _: &str) -> pushdown::Result<Arc<Model>> {
        Ok(Arc::clone(&self.0))
    }
}

/// One thread, one model, and what is counted.
struct Lab {
    layers: Layers,
    model: ModelStep,
    metrics: Metrics,
}

impl Lab {
    fn new() -> Self {
        let description = json!({
            "name": "n", "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true, "working_bytes": 0,
            "inputs": [{"tensor": "x", "shape": [3, 2, 2]}], "outputs": [],
            "cut_points": [{"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0}],
        });
        let description = serde_json::from_value(description).unwrap();
        let model = One(Arc::new(Model::from_description(description, Nowhere).unwrap()));
        let text = "decode | resize(2, 2) | to_float | model(n)";
        let pipeline = Pipeline::parse_with(text, &model).unwrap();
        let (_, model) = pipeline.first_model(0..pipeline.len()).unwrap();
        let cpu = CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap();
        let metrics = Metrics::default();
        Self {
            layers: Layers::new(cpu, metrics.clone()),
            model,
            metrics,
        }
    }

    /// A request of a tenant, to its end.
    async fn request(&self, tenant: &str) {
        let value = Tensor::new(DType::F32, Layout::Chw, vec![3, 2, 2], vec![0_u8; 48].into());
        let (standing, value) = (Tenant::of(Some(tenant)).now(), value.unwrap());
        let error = self.layers.run(&standing, &self.model, value).await.unwrap_err();
        assert_eq!(error.to_string(), "the model `n`: nowhere");
    }

    /// Batches, and the samples in them.
    fn ran(&self) -> (u64, u64) {
        let (batches, samples) = (&self.metrics.layer_batches, &self.metrics.layer_samples);
        (batches.get(), samples.get())
    }
}

#[tokio::test(start_paused = true)]
async fn a_sample_waits_for_others_no_longer_than_two_milliseconds() {
    let (lab, started) = (Lab::new(), Instant::now());
    lab.request("alone").await;
    assert_eq!(started.elapsed(), MOST);
    assert_eq!(lab.ran(), (1, 1));
}

/// Those who come later keep nobody any longer.
#[tokio::test(start_paused = true)]
async fn the_first_to_come_says_how_long_all_wait() {
    let (lab, started) = (Lab::new(), Instant::now());
    let late = async {
        sleep(MOST / 2).await;
        lab.request("late").await;
    };
    tokio::join!(lab.request("first"), lab.request("second"), late);
    assert_eq!(started.elapsed(), MOST);
    assert_eq!(lab.ran(), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_waits_for_nobody() {
    let (lab, started) = (Lab::new(), Instant::now());
    join_all(["a", "b", "c", "d", "e", "f", "g", "h"].map(|tenant| lab.request(tenant))).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(lab.ran(), (1, 8));
}

/// The ninth goes by itself, and has its own time to wait.
#[tokio::test(start_paused = true)]
async fn a_batch_has_eight_samples_at_most() {
    let (lab, started) = (Lab::new(), Instant::now());
    join_all((0..9).map(|_| lab.request("one"))).await;
    assert_eq!(started.elapsed(), MOST);
    assert_eq!(lab.ran(), (2, 9));
}

/// Whichever samples were queued first.
#[tokio::test(start_paused = true)]
async fn a_batch_stands_where_the_oldest_sample_of_each_tenant_does() {
    let (one, other) = (Tenant::of(Some("one")), Tenant::of(Some("other")));
    let mut came = Vec::new();
    for tenant in [&other, &one, &one, &other] {
        came.push(tenant.now());
        sleep(MOST).await;
    }
    let waiting = |nth: usize| Waiting {
        standing: came[nth].clone(),
        value: Tensor::new(DType::F32, Layout::Chw, vec![3, 2, 2], vec![0_u8; 48].into()).unwrap(),
        done: oneshot::channel().0,
    };
    let standings = oldest(&[3, 2, 1, 0].map(waiting));
    let of = |tenant| {
        standings
            .iter()
            .filter(move |at| at.tenant() == tenant)
            .map(Standing::since)
    };
    assert_eq!(of(&one).collect::<Vec<_>>(), [came[1].since()]);
    assert_eq!(of(&other).collect::<Vec<_>>(), [came[0].since()]);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_before_the_batch_takes_the_sample_along() {
    let lab = Lab::new();
    {
        let gone = lab.request("gone");
        tokio::pin!(gone);
        // Polled once, so that it is queued, then dropped.
        assert!(futures::poll!(&mut gone).is_pending());
    }
    lab.request("stays").await;
    assert_eq!(lab.ran(), (1, 1));
}

/// Runs of other models, or of other layers, are in other queues.
#[tokio::test(start_paused = true)]
async fn a_run_waits_for_threads_that_runs_in_other_queues_have() {
    let lab = Lab::new();
    let others = lab.layers.threads.take(1);
    let request = lab.request("waits");
    tokio::pin!(request);
    while lab.ran() == (0, 0) {
        assert!(futures::poll!(&mut request).is_pending());
        sleep(MOST).await;
    }
    // By the clock on the wall, long enough for what does not wait.
    std::thread::sleep(Duration::from_millis(50));
    assert!(futures::poll!(&mut request).is_pending(), "there is one thread");
    drop(others);
    request.await;
}
