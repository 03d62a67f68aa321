//! Ranges of layers: where a model is entered, and where it is left.

use super::CutPoint;
use pushdown_core::DType;

/// A tensor of a model at which a range of layers can start or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// The input.
    Input,
    /// A cut point, by its index.
    Cut(usize),
}

/// The layers between two boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRange {
    /// Where the layers start.
    pub from: Boundary,
    /// The cut point at which they end, by its index.
    pub to: usize,
}

impl LayerRange {
    /// Whether no layer lies between the boundaries.
    pub(super) fn is_empty(&self) -> bool {
        self.from >= Boundary::Cut(self.to)
    }

    /// Approximate bytes of the weights of these layers: the size of one copy of them in memory.
    pub(super) fn weight_bytes(&self, cuts: &[CutPoint]) -> u64 {
        let parameters_until = |cut: usize| cuts.get(cut).map_or(0, |cut| cut.parameters);
        let before = match self.from {
            Boundary::Input => 0,
            Boundary::Cut(cut) => parameters_until(cut),
        };
        let parameters = parameters_until(self.to).saturating_sub(before);
        parameters.saturating_mul(DType::F32.size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of copies of a range depends on the weights of the range, not of the whole model.
    #[test]
    fn a_range_counts_only_the_weights_between_its_boundaries() {
        let cut = |parameters: u64| CutPoint {
            tensor: "t".to_owned(),
            shape: vec![1],
            bytes: 4,
            parameters,
            macs: 0,
        };
        let cuts = [cut(10), cut(30), cut(1_000)];
        let weight_bytes = |cuts: &[CutPoint], from, to| LayerRange { from, to }.weight_bytes(cuts);
        assert_eq!(weight_bytes(&cuts, Boundary::Input, 2), 4_000);
        assert_eq!(weight_bytes(&cuts, Boundary::Input, 0), 40);
        assert_eq!(weight_bytes(&cuts, Boundary::Cut(0), 1), 80);
        // A gateway may send any numbers, in any order.
        assert_eq!(weight_bytes(&cuts, Boundary::Cut(2), 0), 0);
        assert_eq!(weight_bytes(&[cut(u64::MAX)], Boundary::Input, 0), u64::MAX);
        assert_eq!(weight_bytes(&cuts, Boundary::Input, 7), 0);
    }
}
