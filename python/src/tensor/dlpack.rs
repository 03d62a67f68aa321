//! `DLPack`: tensors for PyTorch, JAX and others, without a copy.

use std::sync::Arc;

use dlpark::{
    DlpackFlags, Managed, ManagedTensorBase,
    ffi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned},
    metadata::Dynamic,
    python::{ExportAbi, ExportRequest},
};
use pyo3::{
    IntoPyObjectExt as _,
    exceptions::{PyBufferError, PyValueError},
    prelude::*,
};

use super::Tensor;

/// The arguments of `__dlpack__`, in their order in the standard of the array API.
pub(super) struct Arguments<'a, 'py> {
    pub(super) stream: Option<&'a Bound<'py, PyAny>>,
    pub(super) max_version: Option<(u32, u32)>,
    pub(super) dl_device: Option<(u32, i32)>,
    pub(super) copy: Option<bool>,
}

/// A capsule over the memory of a tensor, or over that of a copy if `copy` is true.
pub(super) fn export(tensor: &Bound<'_, Tensor>, arguments: &Arguments<'_, '_>) -> PyResult<Py<PyAny>> {
    let py = tensor.py();
    // -1 says that nothing is to be synchronized, and nothing is here.
    if let Some(stream) = arguments.stream
        && stream.extract::<i64>().ok() != Some(-1)
    {
        return Err(PyValueError::new_err(format!(
            "invalid stream: expected None for a tensor in host memory, found {}",
            stream.repr()?
        )));
    }
    // The exporter of dlpark makes no copies: it only checks the device and the version.
    let request = ExportRequest::parse(None, arguments.max_version, arguments.dl_device, None)?;
    request.validate_zero_copy(DLDevice::CPU, DlpackFlags::empty())?;
    let copied = (arguments.copy == Some(true))
        .then(|| Tensor::copied(tensor))
        .transpose()?;
    let (tensor, is_copied) = (copied.as_ref().unwrap_or_else(|| tensor.get()), copied.is_some());
    match request.abi() {
        ExportAbi::Versioned => tensor
            .managed::<DLManagedTensorVersioned>(is_copied)?
            .into_py_any(py),
        ExportAbi::Legacy => tensor.managed::<DLManagedTensor>(is_copied)?.into_py_any(py),
    }
}

impl Tensor {
    /// A managed tensor that shares the memory. `is_copied`: no other consumer has this memory.
    fn managed<M: ManagedTensorBase>(&self, is_copied: bool) -> PyResult<Managed<M>> {
        let data = &self.data;
        let prepared = Dynamic::compact(data.signed_shape.clone()).prepare_as::<M>();
        let prepared = prepared.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        let mut initialized = prepared.initialize(Arc::clone(data));
        initialized
            .set_data(data.pointer().cast())
            .set_device(DLDevice::CPU)
            .set_dtype(data.element.dlpack());
        let flags = if is_copied {
            DlpackFlags::IS_COPIED
        } else {
            DlpackFlags::empty()
        };
        #[expect(unsafe_code, reason = "DLPack hands memory to other libraries")]
        // SAFETY: the managed tensor owns the memory; shape and compact strides are those of the memory, which is writable. A copy is
        // made for this export alone.
        let managed = unsafe {
            initialized.set_flags_unchecked(flags);
            initialized.finish()
        };
        Ok(managed)
    }
}
