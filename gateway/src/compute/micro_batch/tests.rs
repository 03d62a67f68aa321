//! Samples of several requests, under a paused clock.

use std::num::NonZeroUsize;

use futures::future::join_all;
use pushdown::{
    DType, Layout, Pipeline,
    pipeline::{NamedModel, Resolver},
    step::model::{Model, ModelFiles, Runtime, WeightSource},
};
use serde_json::json;
use tokio::time::sleep;

use super::*;

/// The longest time that a sample may wait for others.
const MAX_WAIT: Duration = Duration::from_millis(2);

/// Weights that cannot be loaded, so that every sample fails with the model's name.
#[derive(Debug)]
struct MissingWeights;

impl WeightSource for MissingWeights {
    fn fetch(&self) -> pushdown::Result<ModelFiles> {
        let kind = pushdown::ErrorKind::InvalidModel;
        Err(pushdown::Error::new(kind, "no weights"))
    }

    fn runtime(&self) -> pushdown::Result<Runtime> {
        let kind = pushdown::ErrorKind::ModelRuntime;
        Err(pushdown::Error::new(kind, "no runtime"))
    }
}

/// Resolves every name to the same model.
#[derive(Debug)]
struct SingleModel(Arc<Model>);

impl Resolver for SingleModel {
    fn resolve(&self, _: &str) -> pushdown::Result<Arc<dyn NamedModel>> {
        Ok(Arc::<Model>::clone(&self.0))
    }
}

/// A batcher with one thread, one model, and metrics.
struct Lab {
    batcher: MicroBatcher,
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
        let model = SingleModel(Arc::new(
            Model::from_description(description, MissingWeights).unwrap(),
        ));
        let text = "decode | resize(2, 2) | to_float | model(n)";
        let pipeline = Pipeline::parse_with(text, &model).unwrap();
        let (_, model) = pipeline.first_model(0..pipeline.len()).unwrap();
        let cpu = CpuPool::build(NonZeroUsize::MIN, Ledger::default()).unwrap();
        let metrics = Metrics::default();
        Self {
            batcher: MicroBatcher::new(cpu, metrics.clone()),
            model,
            metrics,
        }
    }

    /// Runs a request of a tenant to its end.
    async fn request(&self, tenant: &str) {
        let value = Tensor::new(DType::F32, Layout::Chw, vec![3, 2, 2], vec![0_u8; 48].into());
        let (position, value) = (
            Tenant::from_access_key(Some(tenant)).position_now(),
            value.unwrap(),
        );
        let error = self
            .batcher
            .run(&position, &self.model, value, BatchMembers::Any)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the model `n`: no weights");
    }

    /// Batches so far, and the samples in them.
    fn counts(&self) -> (u64, u64) {
        let (batches, samples) = (&self.metrics.micro_batches, &self.metrics.micro_batch_samples);
        (batches.get(), samples.get())
    }
}

#[tokio::test(start_paused = true)]
async fn a_sample_waits_for_others_no_longer_than_two_milliseconds() {
    let (lab, started) = (Lab::new(), Instant::now());
    lab.request("single").await;
    assert_eq!(started.elapsed(), MAX_WAIT);
    assert_eq!(lab.counts(), (1, 1));
}

/// Later samples do not extend the wait.
#[tokio::test(start_paused = true)]
async fn the_first_sample_determines_the_wait() {
    let (lab, started) = (Lab::new(), Instant::now());
    let late = async {
        sleep(MAX_WAIT / 2).await;
        lab.request("late").await;
    };
    tokio::join!(lab.request("first"), lab.request("second"), late);
    assert_eq!(started.elapsed(), MAX_WAIT);
    assert_eq!(lab.counts(), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let (lab, started) = (Lab::new(), Instant::now());
    join_all(["a", "b", "c", "d", "e", "f", "g", "h"].map(|tenant| lab.request(tenant))).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(lab.counts(), (1, 8));
}

/// The ninth sample waits in a batch of its own.
#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_eight_samples() {
    let (lab, started) = (Lab::new(), Instant::now());
    join_all((0..9).map(|_| lab.request("one"))).await;
    assert_eq!(started.elapsed(), MAX_WAIT);
    assert_eq!(lab.counts(), (2, 9));
}

/// The order in which the samples were queued does not matter.
#[tokio::test(start_paused = true)]
async fn a_batch_has_the_position_of_each_tenants_oldest_sample() {
    let (one, other) = (
        Tenant::from_access_key(Some("one")),
        Tenant::from_access_key(Some("other")),
    );
    let mut arrivals = Vec::new();
    for tenant in [&other, &one, &one, &other] {
        arrivals.push(tenant.position_now());
        sleep(MAX_WAIT).await;
    }
    let waiting = |nth: usize| WaitingSample {
        position: arrivals[nth].clone(),
        value: Tensor::new(DType::F32, Layout::Chw, vec![3, 2, 2], vec![0_u8; 48].into()).unwrap(),
        done: oneshot::channel().0,
    };
    let positions = oldest_positions(&[3, 2, 1, 0].map(waiting));
    let times = |tenant| {
        positions
            .iter()
            .filter(move |at| at.tenant() == tenant)
            .map(QueuePosition::enqueued_at)
    };
    assert_eq!(times(&one).collect::<Vec<_>>(), [arrivals[1].enqueued_at()]);
    assert_eq!(times(&other).collect::<Vec<_>>(), [arrivals[0].enqueued_at()]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_removes_its_sample() {
    let lab = Lab::new();
    {
        let dropped = lab.request("dropped");
        tokio::pin!(dropped);
        // Polled once, so that it is queued, then dropped.
        assert!(futures::poll!(&mut dropped).is_pending());
    }
    lab.request("remaining").await;
    assert_eq!(lab.counts(), (1, 1));
}

/// Runs of other models, or of other layers, are in other queues.
#[tokio::test(start_paused = true)]
async fn a_run_waits_for_threads_of_runs_in_other_queues() {
    let lab = Lab::new();
    let others = lab.batcher.threads.acquire(1);
    let request = lab.request("waiting");
    tokio::pin!(request);
    while lab.counts() == (0, 0) {
        assert!(futures::poll!(&mut request).is_pending());
        sleep(MAX_WAIT).await;
    }
    // Real time, long enough for a run that does not wait for threads.
    std::thread::sleep(Duration::from_millis(50));
    assert!(futures::poll!(&mut request).is_pending(), "there is one thread");
    drop(others);
    request.await;
}
