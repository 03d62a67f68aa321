//! Arrays in host memory, handed to Python without a copy.

mod buffer;
mod dlpack;
mod dtype;

use std::{ffi::c_int, sync::Arc};

use arrow_buffer::MutableBuffer;
use dlpark::ffi::DLDevice;
use pushdown::Layout;
use pyo3::{
    buffer::PyBuffer,
    exceptions::PyMemoryError,
    ffi,
    prelude::*,
    types::{PyMemoryView, PyTuple},
};

pub(crate) use buffer::{to_vec, write_to};
pub(crate) use dtype::ElementType;

use crate::{
    error::config,
    pickle::{self, Pickled},
};

/// A dense, writable array in host memory, row-major, aligned to 64 bytes. Every consumer sees the same memory, which lives as long as
/// one of them.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Tensor {
    data: Arc<TensorData>,
    layout: Layout,
    scales: Option<Py<Self>>,
}

/// The memory of a tensor, and what it holds.
#[derive(Debug)]
struct TensorData {
    /// Never resized, and after construction never read or written from Rust: consumers may write at any time.
    memory: MutableBuffer,
    element: ElementType,
    shape: Vec<usize>,
    /// For the buffer protocol, which borrows them.
    signed_shape: Vec<isize>,
    strides: Vec<isize>,
}

impl TensorData {
    fn pointer(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut()
    }
}

impl Tensor {
    /// A tensor of `memory`, which must have the bytes of `shape`.
    pub(crate) fn new(element: ElementType, shape: Vec<usize>, memory: MutableBuffer) -> PyResult<Self> {
        let expected = byte_count(element, &shape)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or_else(|| config(format!("a tensor of shape {shape:?} is too large")))?;
        if memory.len() != expected {
            return Err(config(format!(
                "invalid tensor: expected {expected} bytes for {} {shape:?}, found {}",
                element.name(),
                memory.len()
            )));
        }
        // All products are at most `expected`, which is checked above.
        let signed = |size: usize| isize::try_from(size).unwrap_or(isize::MAX);
        let mut strides = vec![signed(element.bytes()); shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * signed(shape[axis].max(1));
        }
        Ok(Self {
            data: Arc::new(TensorData {
                memory,
                element,
                signed_shape: shape.iter().copied().map(signed).collect(),
                shape,
                strides,
            }),
            layout: Layout::Flat,
            scales: None,
        })
    }

    /// A tensor of one axis.
    pub(crate) fn from_i64s(values: impl ExactSizeIterator<Item = i64>) -> PyResult<Self> {
        let len = values.len();
        let mut memory = MutableBuffer::with_capacity(len * size_of::<i64>());
        values.for_each(|value| memory.push(value));
        Self::new(ElementType::I64, vec![len], memory)
    }

    /// A tensor of one axis.
    pub(crate) fn from_bools(values: impl ExactSizeIterator<Item = bool>) -> PyResult<Self> {
        let len = values.len();
        let mut memory = MutableBuffer::with_capacity(len);
        values.for_each(|value| memory.push(u8::from(value)));
        Self::new(ElementType::Bool, vec![len], memory)
    }

    /// Zeros, or a copy of `data`, which has the bytes of the tensor.
    fn filled(
        py: Python<'_>,
        element: ElementType,
        shape: Vec<usize>,
        data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bytes = byte_count(element, &shape)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or_else(|| config(format!("a tensor of shape {shape:?} is too large")))?;
        // Too little memory is an error of Python here, where it would end the process below.
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|error| {
            PyMemoryError::new_err(format!("no memory for a tensor of {bytes} bytes: {error}"))
        })?;
        let mut memory = MutableBuffer::from_len_zeroed(bytes);
        if let Some(data) = data {
            buffer::copy_from(py, data, memory.as_slice_mut())?;
        }
        Self::new(element, shape, memory)
    }

    /// The same in other memory, its scales too.
    fn copied(tensor: &Bound<'_, Self>) -> PyResult<Self> {
        let (py, source) = (tensor.py(), tensor.get());
        let shape = source.data.shape.clone();
        let mut copy =
            Self::filled(py, source.data.element, shape, Some(tensor.as_any()))?.with_layout(source.layout);
        if let Some(scales) = &source.scales {
            copy.scales = Some(Py::new(py, Self::copied(scales.bind(py))?)?);
        }
        Ok(copy)
    }

    /// Type of the elements.
    pub(crate) fn element(&self) -> ElementType {
        self.data.element
    }

    /// Size of each axis.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.data.shape
    }

    /// Order of the axes of a value.
    pub(crate) const fn axes(&self) -> Layout {
        self.layout
    }

    /// The quantisation scale of each value.
    pub(crate) fn scale_values(&self, py: Python<'_>) -> PyResult<Option<Vec<f32>>> {
        let scales = self.scales.as_ref();
        scales
            .map(|scales| PyBuffer::get(scales.bind(py).as_any())?.to_vec(py))
            .transpose()
    }

    pub(crate) const fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The same with one quantisation scale per value.
    pub(crate) fn with_scales(mut self, py: Python<'_>, scales: Option<&[f32]>) -> PyResult<Self> {
        self.scales = match scales {
            Some(scales) => {
                let memory = MutableBuffer::from(scales.to_vec());
                Some(Py::new(
                    py,
                    Self::new(ElementType::F32, vec![scales.len()], memory)?,
                )?)
            }
            None => None,
        };
        Ok(self)
    }
}

/// The arguments of the constructor.
type Arguments<'py> = (
    &'static str,
    Vec<usize>,
    Bound<'py, PyAny>,
    &'static str,
    Option<Py<Tensor>>,
);

fn byte_count(element: ElementType, shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(element.bytes(), |bytes, size| bytes.checked_mul(*size))
}

#[pymethods]
impl Tensor {
    /// Zeros, or a copy of `data`, which has the bytes of the tensor. `layout` and `scales` are those of the values.
    #[new]
    #[pyo3(signature = (dtype, shape, data = None, layout = "flat", scales = None))]
    fn py_new(
        py: Python<'_>,
        dtype: &str,
        shape: Vec<usize>,
        data: Option<&Bound<'_, PyAny>>,
        layout: &str,
        scales: Option<Bound<'_, Self>>,
    ) -> PyResult<Self> {
        let element = ElementType::from_name(dtype).ok_or_else(|| {
            config(format!(
                "invalid dtype: expected one of {}, found `{dtype}`",
                ElementType::names()
            ))
        })?;
        let layout = layout.parse().map_err(|()| {
            config(format!(
                "invalid layout: expected one of chw, hwc, flat, found `{layout}`"
            ))
        })?;
        if let Some(scales) = &scales {
            let data = &scales.get().data;
            if data.element != ElementType::F32 || data.shape.len() != 1 {
                return Err(config(format!(
                    "invalid scales: expected f32 with one axis, found {} {:?}",
                    data.element.name(),
                    data.shape
                )));
            }
        }
        let mut tensor = Self::filled(py, element, shape, data)?.with_layout(layout);
        tensor.scales = scales.map(Bound::unbind);
        Ok(tensor)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.data.element.name()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.data.shape)
    }

    /// Order of the axes of a value: "chw", "hwc" or "flat".
    #[getter]
    fn layout(&self) -> &'static str {
        self.layout.name()
    }

    /// Quantisation scale of each value, `f32 [n]`, if values have one.
    #[getter]
    fn scales(&self, py: Python<'_>) -> Option<Py<Self>> {
        self.scales.as_ref().map(|scales| scales.clone_ref(py))
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.data.memory.len()
    }

    /// Address of the first element.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.data.pointer().addr()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.data.shape.first();
        first
            .copied()
            .ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("a tensor without axes has no length"))
    }

    fn __repr__(&self) -> String {
        format!("Tensor({}, shape={:?})", self.dtype(), self.data.shape)
    }

    /// As a NumPy array, without a copy unless one is asked for or another dtype is. `bfloat16`, which NumPy lacks, is `uint16`.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let numpy = py.import("numpy")?;
        let view = PyMemoryView::from(slf.as_any())?;
        let array = numpy.call_method1("asarray", (view,))?;
        let array = match dtype {
            Some(dtype) => {
                array.call_method1("astype", (dtype, "K", "unsafe", true, copy.unwrap_or(false)))?
            }
            None => array,
        };
        match copy {
            Some(true) if dtype.is_none() => array.call_method0("copy"),
            _ => Ok(array),
        }
    }

    /// A view for `memoryview` and NumPy.
    #[expect(unsafe_code, reason = "the buffer protocol fills a C structure")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: Python passes a structure to fill.
        unsafe { buffer::fill(slf, view, flags) }
    }

    /// A capsule that shares the memory, or with `copy` a copy of it. `stream` is None or -1: host memory has no streams. Raises
    /// `BufferError` for another device.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        dlpack::export(
            slf,
            &dlpack::Arguments {
                stream,
                max_version,
                dl_device,
                copy,
            },
        )
    }

    /// The CPU.
    #[expect(clippy::unused_self, reason = "a method in Python")]
    const fn __dlpack_device__(&self) -> (u32, i32) {
        (DLDevice::CPU.device_type.0, DLDevice::CPU.device_id)
    }

    /// A tensor that shares no memory with others.
    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Self> {
        Self::copied(slf)
    }

    /// A tensor that shares no memory with others.
    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::copied(slf)
    }

    /// Pickles with the arguments of the constructor. With protocol 5 the memory may travel out of band.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<Pickled<'py, Arguments<'py>>> {
        let tensor = slf.get();
        let arguments = (
            tensor.dtype(),
            tensor.data.shape.clone(),
            pickle::memory(slf.as_any(), protocol)?,
            tensor.layout(),
            tensor.scales(slf.py()),
        );
        Ok((slf.get_type(), arguments))
    }
}
