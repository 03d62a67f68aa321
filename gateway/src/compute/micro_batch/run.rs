//! Runs a batch as a whole, or one sample at a time if that fails.

use std::time::{Duration, Instant};

use pushdown::{
    Tensor,
    step::model::{LayerRange, ModelStep},
};

/// The output of model layers for one sample.
#[derive(Debug)]
pub struct ModelOutput {
    /// The value after the layers.
    pub value: Tensor,
    /// Its part of the batch's time, on all the threads that worked on it.
    pub time: Duration,
}

/// Runs the batch on `threads` threads. If that fails, runs the samples one by one, so that no sample fails because of
/// another.
pub(super) fn run_batch(
    layers: &ModelStep,
    values: Vec<Tensor>,
    threads: u32,
) -> Vec<pushdown::Result<ModelOutput>> {
    let LayerRange { from, to: until } = layers.range();
    let timed = |values: &[Tensor]| {
        let started = Instant::now();
        let outputs = layers.model().run(from, until, values)?;
        let count = u32::try_from(values.len().max(1)).unwrap_or(u32::MAX);
        let time = started.elapsed() * threads / count;
        Ok::<_, pushdown::Error>(outputs.into_iter().map(move |value| ModelOutput { value, time }))
    };
    let run_one = |value: Tensor| {
        let missing = || pushdown::Error::new(pushdown::ErrorKind::Internal, "the model returned no value");
        timed(&[value])?.next().ok_or_else(missing)
    };
    match timed(&values) {
        Ok(outputs) if outputs.len() == values.len() => outputs.map(Ok).collect(),
        _ => values.into_iter().map(run_one).collect(),
    }
}
