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
        let mut rows = Vec::with_capacity(self.len());
        let mut data = Vec::new();
        let mut scales = Vec::new();
        let mut common: Option<ArrayType> = None;
        for (index, row) in self.rows().iter().enumerate() {
            let Ok(value) = &row.value else { continue };
            let (found, elements, scale) = parts(value).ok_or_else(|| {
                Error::config(format!(
                    "cannot stack: found bytes at `{}`, expected an image or a tensor",
                    row.key
                ))
            })?;
            match &common {
                None => data.reserve_exact(elements.len() * self.len()),
                Some(common) if *common == found => {}
                Some(ArrayType { dtype, shape, .. }) => {
                    return Err(Error::config(format!(
                        "cannot stack: found {} {:?} at `{}`, expected {dtype} {shape:?} as before it; \
                         let the pipeline fix the shape, with `resize(w, h)` or a crop",
                        found.dtype, found.shape, row.key
                    )));
                }
            }
            common = Some(found);
            data.extend_from_slice(elements);
            scales.extend(scale);
            rows.push(index);
        }
        let Some(ArrayType {
            dtype,
            layout,
            mut shape,
            is_quantized,
        }) = common
        else {
            return Ok(None);
        };
        shape.insert(0, rows.len());
        let tensor = Tensor::new(dtype, layout, shape, Buffer::from_vec(data))?;
        Ok(Some(Stacked {
            tensor,
            rows,
            scales: is_quantized.then_some(scales),
        }))
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
mod tests {
    use pushdown::{Image, wire::RowError};

    use super::*;
    use crate::Row;

    fn batch(values: Vec<Result<Sample, RowError>>) -> Batch {
        let rows = values.into_iter().enumerate().map(|(index, value)| Row {
            position: index as u64,
            index,
            key: format!("k{index}").into(),
            stage: 0,
            value,
        });
        Batch::new(0, rows.collect())
    }

    fn image(width: u32, fill: u8) -> Sample {
        Sample::Image(Image::new(width, 1, vec![fill; width as usize * 3]).unwrap())
    }

    #[test]
    fn values_are_consecutive_and_errors_leave_no_gap() {
        let stacked = batch(vec![
            Ok(image(2, 1)),
            Err(RowError::new("NoSuchKey", "gone")),
            Ok(image(2, 3)),
        ])
        .stack()
        .unwrap();
        let stacked = stacked.unwrap();
        assert_eq!(stacked.tensor.shape(), [2, 1, 2, 3]);
        assert_eq!(
            stacked.tensor.data().as_slice(),
            [1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3]
        );
        assert_eq!((stacked.rows, stacked.scales), (vec![0, 2], None));
    }

    #[test]
    fn scales_are_stacked_with_their_values() {
        let code = |scale| {
            let tensor = Tensor::new(DType::I8, Layout::Flat, vec![1], Buffer::from_vec(vec![7u8])).unwrap();
            Ok(Sample::Tensor(tensor.with_scale(Some(scale))))
        };
        let stacked = batch(vec![code(0.5), code(2.0)]).stack().unwrap().unwrap();
        assert_eq!(stacked.scales, Some(vec![0.5, 2.0]));
    }

    #[test]
    fn values_without_a_common_shape_cannot_be_stacked() {
        let error = batch(vec![Ok(image(2, 1)), Ok(image(3, 1))])
            .stack()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found u8 [1, 3, 3] at `k1`, expected u8 [1, 2, 3]"),
            "{error}"
        );
        assert!(batch(vec![Ok(Sample::Bytes("x".into()))]).stack().is_err());
        assert_eq!(batch(vec![]).stack().unwrap(), None);
    }
}
