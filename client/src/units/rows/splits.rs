//! Where the steps of a pipeline can run: the pipeline, cut at each stage at which rows can be handed over.

use pushdown::{Pipeline, pipeline::RowStage, wire::Split};

/// A pipeline whose first steps run at the gateway, and the others on this host.
#[derive(Debug, Clone)]
pub(super) struct RowSplit {
    /// The stage at which rows are handed over. At the first one stored columns are read.
    pub(super) stage: RowStage,
    /// The pipeline, with a boundary between steps at that stage.
    pub(super) pipeline: Pipeline,
    /// Number of steps before the boundary.
    pub(super) steps: usize,
}

impl RowSplit {
    /// All splits of a pipeline, from stored columns to rows after all steps.
    pub(super) fn all(pipeline: &Pipeline) -> Vec<Self> {
        let split = |stage: RowStage| {
            let (pipeline, steps) = pipeline.cut_rows(stage)?;
            Some(Self {
                stage,
                pipeline,
                steps,
            })
        };
        pipeline.row_stages().into_iter().filter_map(split).collect()
    }

    /// Whether stored columns are read, so that all steps run on this host.
    pub(super) const fn is_local(&self) -> bool {
        self.steps == 0
    }

    /// Whether the stage is inside of `each`.
    pub(super) const fn is_inside_each(&self) -> bool {
        self.stage.inner > 0
    }

    /// The steps that have been applied to rows on arrival. A scan of stored columns is the first step.
    pub(super) fn arrival_steps(&self) -> usize {
        self.steps.max(1)
    }

    /// The index of a configured split, whose stage is part of the pipeline. `None` if the reader may choose.
    pub(super) fn fixed(splits: &[Self], split: Split) -> Option<usize> {
        let stage = match split {
            Split::Smallest => return None,
            Split::Full => return splits.len().checked_sub(1),
            Split::At(stage) => RowStage {
                steps: stage.into(),
                inner: 0,
            },
        };
        splits.iter().position(|split| split.stage == stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_split_between_steps_and_inside_of_each() {
        let pipeline = Pipeline::parse("select | each(a: decode | resize(2, 2) | to_float)").unwrap();
        let splits = RowSplit::all(&pipeline);
        let shape = |split: &RowSplit| {
            (
                split.stage.steps,
                split.stage.inner,
                split.steps,
                split.pipeline.len(),
            )
        };
        assert_eq!(
            splits.iter().map(shape).collect::<Vec<_>>(),
            [
                (0, 0, 0, 2),
                (1, 0, 1, 2),
                (1, 1, 2, 3),
                (1, 2, 2, 3),
                (2, 0, 2, 2)
            ]
        );
        let fixed = |split| RowSplit::fixed(&splits, split);
        assert_eq!(
            [
                Split::At(0),
                Split::At(1),
                Split::At(2),
                Split::Full,
                Split::Smallest
            ]
            .map(fixed),
            [Some(0), Some(1), Some(4), Some(4), None]
        );
    }
}
