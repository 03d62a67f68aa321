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
    /// The quantisation scale of each entry of the batch axis, if values have one.
    pub scales: Option<Vec<f32>>,
    /// Bytes of the array.
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
        let mut free = stacked.buffer(buffer)?;
        for elements in self.elements(&stacked) {
            let (value, rest) = free.split_at_mut(elements.len());
            value.copy_from_slice(elements);
            free = rest;
        }
        Ok(Some(stacked))
    }

    /// Copies the values into the beginning of `buffer`, each at the place of its row, so that the batch axis has the rows of the
    /// batch; rows without a value become zeros. Returns what the array is, or `None` if no row has a value.
    /// [`row_layout`](Self::row_layout) says how many bytes it takes.
    ///
    /// # Errors
    /// As [`stack_into`](Self::stack_into).
    pub fn stack_rows_into(&self, buffer: &mut [u8]) -> Result<Option<StackLayout>> {
        let Some(layout) = self.row_layout()? else {
            return Ok(None);
        };
        let free = layout.buffer(buffer)?;
        let row_bytes = layout.bytes / self.len();
        if row_bytes > 0 {
            for (row, place) in self.rows().iter().zip(free.chunks_exact_mut(row_bytes)) {
                match row.value.as_ref().ok().and_then(parts) {
                    Some((_, elements, _)) => place.copy_from_slice(elements),
                    None => place.fill(0),
                }
            }
        }
        Ok(Some(layout))
    }

    /// What [`stack_rows_into`](Self::stack_rows_into) would return, without a copy; `None` if no row has a value.
    ///
    /// # Errors
    /// If dtypes or shapes differ, or values are bytes.
    pub fn row_layout(&self) -> Result<Option<StackLayout>> {
        let layout = self.stack_layout()?;
        Ok(layout.map(|mut layout| {
            let values = layout.rows.len();
            layout.bytes = layout.bytes / values * self.len();
            layout.shape[0] = self.len();
            if let Some(scales) = &mut layout.scales {
                let mut of_rows = vec![0.0; self.len()];
                for (row, scale) in layout.rows.iter().zip(&*scales) {
                    of_rows[*row] = *scale;
                }
                *scales = of_rows;
            }
            layout
        }))
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
                    row.name()
                ))
            })?;
            if let Some(expected) = &common
                && *expected != found
            {
                return Err(Error::config(format!(
                    "cannot stack: found {} {:?} at `{}`, expected {} {:?} as before it; \
                     let the pipeline fix the shape, with `resize(w, h)` or a crop",
                    found.dtype,
                    found.shape,
                    row.name(),
                    expected.dtype,
                    expected.shape
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

impl StackLayout {
    /// The beginning of `buffer` that holds all values.
    fn buffer<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a mut [u8]> {
        let found = buffer.len();
        buffer.get_mut(..self.bytes).ok_or_else(|| {
            Error::config(format!(
                "cannot stack: expected a buffer of at least {} bytes, found {found}",
                self.bytes
            ))
        })
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
        Sample::Bytes(_) | Sample::CroppedJpeg(_) | Sample::Table(_) => None,
    }
}

#[cfg(test)]
mod tests;
