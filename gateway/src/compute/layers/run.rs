//! One batch: all at once, or one by one.

use std::time::{Duration, Instant};

use pushdown::{
    Tensor,
    step::model::{LayerRange, ModelStep},
};

/// What layers made of a sample.
#[derive(Debug)]
pub struct Ran {
    /// The value behind them.
    pub value: Tensor,
    /// Its share of the batch's time, on all the threads that worked on it.
    pub time: Duration,
}

/// All at once, on so many threads; where that fails one by one, so that no sample fails for another.
pub(super) fn run_at_once(
    layers: &ModelStep,
    values: Vec<Tensor>,
    threads: u32,
) -> Vec<pushdown::Result<Ran>> {
    let LayerRange { from, to: until } = layers.range();
    let timed = |values: &[Tensor]| {
        let started = Instant::now();
        let outputs = layers.model().run(from, until, values)?;
        let count = u32::try_from(values.len().max(1)).unwrap_or(u32::MAX);
        let time = started.elapsed() * threads / count;
        Ok::<_, pushdown::Error>(outputs.into_iter().map(move |value| Ran { value, time }))
    };
    let alone = |value: Tensor| {
        let missing = || pushdown::Error::new(pushdown::ErrorKind::Internal, "layers gave no value");
        timed(&[value])?.next().ok_or_else(missing)
    };
    match timed(&values) {
        Ok(ran) if ran.len() == values.len() => ran.map(Ok).collect(),
        _ => values.into_iter().map(alone).collect(),
    }
}
