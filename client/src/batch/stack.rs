//! The values of a batch as one array.

use arrow_buffer::Buffer;
use pushdown::{DType, Layout, Sample, Tensor};

use super::Batch;
use crate::error::{Error, Result};

/// The values of a batch, consecutive in one array with a batch axis in front.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacked {
    /// Shape `[n, ...]`; images are u8, height x width x 3. The layout is that of the values.
    pub tensor: Tensor,
    /// Index in the batch of each value. Rows without a value are left out.
    pub rows: Vec<usize>,
    /// The quantisation scale of each value, if values have one.
    pub scales: Option<Vec<f32>>,
}

/// What stacking the values of a batch results in.
#[derive(Debug, Clone, PartialEq)]
pub struct StackLayout {
    /// Type of the elements.
    pub dtype: DType,
    /// Order of the axes of a value.
    pub layout: Layout,
    /// Shape `[n, ...]`; images are height x width x 3.
    pub shape: Vec<usize>,
    /// Index in the batch of each value. Rows without a value are left out.
    pub rows: Vec<usize>,
    /// The quantisation scale of each value, if values have one.
    pub scales: Option<Vec<f32>>,
    /// Bytes of all values.
    pub bytes: usize,
}

/// The properties that all stacked values share.
#[derive(Debug, Clone, PartialEq)]
struct ArrayType {
    dtype: DType,
    layout: Layout,
    shape: Vec<usize>,
    is_quantized: bool,
}

impl Batch {
    /// Copies the values into one contiguous array; `None` if no row has a value.
    ///
    /// # Errors
    /// If dtypes or shapes differ, or values are bytes.
    pub fn stack(&self) -> Result<Option<Stacked>> {
        let Some(stacked) = self.stack_layout()? else {
            return Ok(None);
        };
        let mut data = Vec::with_capacity(stacked.bytes);
        for elements in self.elements(&stacked) {
            data.extend_from_slice(elements);
        }
        let StackLayout {
            dtype,
            layout,
            shape,
            rows,
            scales,
            ..
        } = stacked;
        let tensor = Tensor::new(dtype, layout, shape, Buffer::from_vec(data))?;
        Ok(Some(Stacked { tensor, rows, scales }))
    }

    /// Copies the values into the beginning of `buffer`, one after the other, and returns what they are; `None` if no row has
    /// a value. [`stack_layout`](Self::stack_layout) says how many bytes it takes.
    ///
    /// # Errors
    /// If dtypes or shapes differ, values are bytes, or the buffer is too small; then nothing is written.
    pub fn stack_into(&self, buffer: &mut [u8]) -> Result<Option<StackLayout>> {
        let Some(stacked) = self.stack_layout()? else {
            return Ok(None);
        };
        let found = buffer.len();
        let Some(mut free) = buffer.get_mut(..stacked.bytes) else {
            return Err(Error::config(format!(
                "cannot stack: expected a buffer of at least {} bytes, found {found}",
                stacked.bytes
            )));
        };
        for elements in self.elements(&stacked) {
            let (value, rest) = free.split_at_mut(elements.len());
            value.copy_from_slice(elements);
            free = rest;
        }
        Ok(Some(stacked))
    }

    /// What [`stack`](Self::stack) would return, without a copy; `None` if no row has a value.
    ///
    /// # Errors
    /// If dtypes or shapes differ, or values are bytes.
    pub fn stack_layout(&self) -> Result<Option<StackLayout>> {
        let mut rows = Vec::with_capacity(self.len());
        let mut scales = Vec::new();
        let mut bytes = 0;
        let mut common: Option<ArrayType> = None;
        for (index, row) in self.rows().iter().enumerate() {
            let Ok(value) = &row.value else { continue };
            let (found, elements, scale) = parts(value).ok_or_else(|| {
                Error::config(format!(
                    "cannot stack: found bytes at `{}`, expected an image or a tensor",
                    row.key
                ))
            })?;
            if let Some(expected) = &common
                && *expected != found
            {
                return Err(Error::config(format!(
                    "cannot stack: found {} {:?} at `{}`, expected {} {:?} as before it; \
                     let the pipeline fix the shape, with `resize(w, h)` or a crop",
                    found.dtype, found.shape, row.key, expected.dtype, expected.shape
                )));
            }
            common = Some(found);
            bytes += elements.len();
            scales.extend(scale);
            rows.push(index);
        }
        Ok(common.map(|common| {
            let mut shape = common.shape;
            shape.insert(0, rows.len());
            StackLayout {
                dtype: common.dtype,
                layout: common.layout,
                shape,
                rows,
                scales: common.is_quantized.then_some(scales),
                bytes,
            }
        }))
    }

    /// The elements of each stacked value.
    fn elements<'a>(&'a self, stacked: &'a StackLayout) -> impl Iterator<Item = &'a [u8]> {
        let value = |row: &usize| self.rows()[*row].value.as_ref().ok();
        stacked
            .rows
            .iter()
            .filter_map(value)
            .filter_map(|value| parts(value).map(|(_, elements, _)| elements))
    }
}

fn parts(value: &Sample) -> Option<(ArrayType, &[u8], Option<f32>)> {
    match value {
        Sample::Image(image) => {
            let array_type = ArrayType {
                dtype: DType::U8,
                layout: Layout::Hwc,
                shape: vec![image.height() as usize, image.width() as usize, 3],
                is_quantized: false,
            };
            Some((array_type, image.pixels(), None))
        }
        Sample::Tensor(tensor) => {
            let array_type = ArrayType {
                dtype: tensor.dtype(),
                layout: tensor.layout(),
                shape: tensor.shape().to_vec(),
                is_quantized: tensor.scale().is_some(),
            };
            Some((array_type, tensor.data().as_slice(), tensor.scale()))
        }
        Sample::Bytes(_) | Sample::Table(_) => None,
    }
}

#[cfg(test)]
mod tests;
