//! What arrives of a sample.

/// The stage at which a sample arrives at the host. Only [`Object`](Self::Object) is plain reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The stored object, unchanged.
    Object,
    /// A JPEG of only the blocks of the stored one that the pipeline needs. The gateway makes it, and the host runs all steps on it.
    CroppedJpeg,
    /// The value after this number of steps, at least 1, all of which the gateway ran.
    After(usize),
}

impl Stage {
    /// The stage after this number of steps: the object if there are none.
    pub const fn after(steps: usize) -> Self {
        if steps == 0 {
            Self::Object
        } else {
            Self::After(steps)
        }
    }

    /// The number of steps that were applied at the gateway. The host runs the others.
    pub const fn steps(self) -> usize {
        match self {
            Self::Object | Self::CroppedJpeg => 0,
            Self::After(steps) => steps,
        }
    }

    /// Whether the sample is read plainly.
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crop_is_neither_the_object_nor_a_value() {
        assert_eq!(Stage::after(0), Stage::Object);
        assert_eq!(Stage::after(3), Stage::After(3));
        assert_eq!(
            [Stage::Object, Stage::CroppedJpeg, Stage::After(3)].map(Stage::steps),
            [0, 0, 3]
        );
        assert!(Stage::Object.is_plain() && !Stage::CroppedJpeg.is_plain() && !Stage::After(1).is_plain());
        assert!(Stage::Object < Stage::CroppedJpeg && Stage::CroppedJpeg < Stage::After(1));
    }
}
