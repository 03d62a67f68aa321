//! Features of samples.

use half::{bf16, f16};
use pushdown::DType;
use pushdown_client::reader::Stacked;

/// A row of numbers for each sample.
#[derive(Debug, Default)]
pub(crate) struct Features {
    values: Vec<f32>,
    width: usize,
}

impl Features {
    pub(crate) const fn new(values: Vec<f32>, width: usize) -> Self {
        Self { values, width }
    }

    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width.max(1))
    }

    /// Splits after the given number of rows.
    pub(crate) fn split(self, rows: usize) -> (Self, Self) {
        let mut values = self.values;
        let others = values.split_off((rows * self.width).min(values.len()));
        (Self::new(values, self.width), Self::new(others, self.width))
    }

    /// Adds the values of a batch, one row per sample.
    pub(crate) fn extend(&mut self, stacked: &Stacked) -> anyhow::Result<()> {
        let width = stacked.tensor.shape().iter().skip(1).product();
        anyhow::ensure!(
            self.values.is_empty() || width == self.width,
            "found {width} features, expected {} as before",
            self.width
        );
        self.width = width;
        let data = stacked.tensor.data().as_slice();
        match stacked.tensor.dtype() {
            DType::F32 => self.push(data, f32::from_le_bytes),
            DType::F16 => self.push(data, |bytes| f16::from_le_bytes(bytes).to_f32()),
            DType::Bf16 => self.push(data, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            other => anyhow::bail!(
                "found a pipeline that ends in {other}, expected floats: let it end in `cast(f16)`"
            ),
        }
        Ok(())
    }

    fn push<const N: usize>(&mut self, data: &[u8], float: impl Fn([u8; N]) -> f32) {
        let (elements, _) = data.as_chunks::<N>();
        self.values.extend(elements.iter().map(|bytes| float(*bytes)));
    }
}
