//! Micro-batches in a program without the feature `models`: no step runs in one.

use std::{ops::Range, time::Duration};

use pushdown::{Pipeline, Tensor};

use super::{CpuPool, QueuePosition};
use crate::{error::Result, telemetry::Metrics};

/// Runs nothing.
#[derive(Debug, Clone)]
pub struct MicroBatcher;

/// Which samples a batch may have.
#[derive(Debug, Clone, Copy)]
pub enum BatchMembers {
    /// Any that wait for the same layers.
    Any,
    /// One.
    One,
}

/// Layers of a model. A program without the feature `models` never has any.
#[derive(Debug)]
pub enum ModelLayers {}

/// The output of model layers for one sample.
#[derive(Debug)]
pub struct ModelOutput {
    /// The value after the layers.
    pub value: Tensor,
    /// Its part of the batch's time.
    pub time: Duration,
}

impl MicroBatcher {
    /// Nothing to run on the pool.
    pub fn new(_cpu: CpuPool, _metrics: Metrics) -> Self {
        Self
    }

    /// No step runs in micro-batches.
    pub const fn first_layers(
        _pipeline: &Pipeline,
        _stretch: &Range<usize>,
    ) -> Option<(Range<usize>, ModelLayers)> {
        None
    }

    /// Never called, since there are no layers.
    #[expect(clippy::unused_async, reason = "the same signature as with models")]
    pub async fn run(
        &self,
        _position: &QueuePosition,
        layers: &ModelLayers,
        _value: Tensor,
        _members: BatchMembers,
    ) -> Result<ModelOutput> {
        match *layers {}
    }
}
