//! The stage at which a split cuts a pipeline.

use pushdown_wire::Split;

use crate::{BytesKind, Error, Pipeline, Result};

impl Pipeline {
    /// The stage of a split for an object.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a split past the last step.
    pub fn stage_of(&self, split: Split, object: &BytesKind) -> Result<usize> {
        self.check_split(split)?;
        Ok(match split {
            Split::Full => self.len(),
            Split::Smallest => self.smallest_stage(object),
            Split::At(stage) => usize::from(stage),
        })
    }

    /// Checks that the pipeline has enough steps for the split.
    pub(crate) fn check_split(&self, split: Split) -> Result<()> {
        match split {
            Split::At(stage) if usize::from(stage) > self.len() => Err(Error::wire(format!(
                "found split {stage}, expected 0 to {}: the pipeline has no more steps",
                self.len()
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_resolve_within_the_pipeline() {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
        let object = BytesKind {
            length: Some(100_000),
            ..BytesKind::default()
        };
        assert_eq!(pipeline.stage_of(Split::Full, &object).unwrap(), 3);
        assert_eq!(pipeline.stage_of(Split::At(0), &object).unwrap(), 0);
        assert_eq!(pipeline.stage_of(Split::At(3), &object).unwrap(), 3);
        assert_eq!(
            pipeline.stage_of(Split::Smallest, &object).unwrap(),
            2,
            "192 bytes of pixels"
        );
        assert_eq!(
            pipeline.stage_of(Split::At(4), &object).unwrap_err().kind(),
            crate::ErrorKind::InvalidWire
        );
    }
}
