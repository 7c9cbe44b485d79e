//! The tensors of a model by path, as its layers ask for them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write;
use std::rc::Rc;

use scry_tensor::{DType, Device, Shape, Tensor};

use super::Weights;
use super::tensor_info::TensorInfo;
use crate::error::{Error, ErrorKind, Result};

/// Most names of a kind that an error lists.
const MAX_LISTED: usize = 20;

/// The tensors of a model, or of one of its modules, by name, as PyTorch's `state_dict`: layers
/// request tensors by name and shape, and [`finish`](Self::finish) reports all missing, unexpected
/// and mismatched tensors in one error.
///
/// A tensor that is missing, or of another shape, does not end loading: [`get`](Self::get) returns
/// a placeholder of NaNs (zeros for integers and bools), so that the list of problems is complete.
/// Use no tensors before `finish` has succeeded.
///
/// ```
/// use scry_models::{Device, ErrorKind, Weights};
///
/// let header = br#"{"layer.0.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#;
/// let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// file.extend(header);
/// file.extend([1.5f32, 2.5].map(f32::to_le_bytes).concat());
/// let weights = Weights::from_bytes(file)?;
///
/// let gpu = Device::open("cpu")?;
/// let dict = weights.state_dict(&gpu);
/// let layer = dict.scope("layer.0");
/// let weight = layer.get("weight", [1, 2])?;
/// let bias = layer.get("bias", [1])?;
/// let error = dict.finish().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Keys);
/// assert_eq!(error.missing(), ["layer.0.bias"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "`finish` reports what does not fit"]
pub struct StateDict<'w> {
    weights: &'w Weights,
    device: Device,
    /// Empty, or a path that ends with a dot.
    prefix: String,
    floats: Option<DType>,
    requests: Rc<RefCell<Requests>>,
}

/// What layers have asked for.
#[derive(Default)]
struct Requests {
    used: HashSet<String>,
    missing: Vec<String>,
    /// Names with both shapes, as text.
    mismatched: Vec<String>,
    is_finished: bool,
}

impl Drop for Requests {
    fn drop(&mut self) {
        let problems = self.missing.len() + self.mismatched.len();
        if problems > 0 && !self.is_finished && !std::thread::panicking() {
            log::error!(
                "{problems} tensors do not fit the model; call `StateDict::finish` to see which"
            );
        }
    }
}

impl Weights {
    /// Returns all tensors by path, to be loaded to a device.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let weight = dict.get("pooler.dense.weight", [384, 384])?;
    /// dict.finish()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn state_dict(&self, device: &Device) -> StateDict<'_> {
        StateDict {
            weights: self,
            device: device.clone(),
            prefix: String::new(),
            floats: None,
            requests: Rc::default(),
        }
    }
}

impl StateDict<'_> {
    /// Converts floats (`f32`, `f16`, `bf16`, `f64`) to one type when they are loaded. Quantised
    /// weights and integers remain as they are.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu).with_float_dtype(scry_models::DType::F16);
    /// assert_eq!(dict.get("pooler.dense.weight", [384, 384])?.dtype(), scry_models::DType::F16);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn with_float_dtype(mut self, dtype: DType) -> Self {
        self.floats = Some(dtype);
        self
    }

    /// Returns the part of the model with a path, such as `encoder.layer.0` (candle's
    /// `VarBuilder::pp`). It shares the record of requests with `self`.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let attention = dict.scope("encoder.layer.0").scope("attention.self");
    /// assert_eq!(attention.path("query.bias"), "encoder.layer.0.attention.self.query.bias");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn scope(&self, path: &str) -> Self {
        Self {
            prefix: format!("{}{path}.", self.prefix),
            device: self.device.clone(),
            requests: self.requests.clone(),
            ..*self
        }
    }

    /// Returns the device to which tensors are loaded.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the tensor in the file, without loading it; `None` if there is none.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let has_pooler = dict.info("pooler.dense.weight").is_some();
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.weights.info(&format!("{}{name}", self.prefix))
    }

    /// Returns the path of a name.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// assert_eq!(dict.scope("pooler").path("dense.bias"), "pooler.dense.bias");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Notes that a model needs a tensor of a shape, without loading it: [`finish`](Self::finish)
    /// reports it if it is missing, or of another shape. For models that check all names before
    /// memory is allocated.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// dict.expect("pooler.dense.bias", [384]);
    /// dict.finish()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn expect(&self, name: &str, shape: impl Into<Shape>) {
        let (path, shape) = (self.path(name), shape.into());
        let mut requests = self.requests.borrow_mut();
        match self.weights.info(&path) {
            None => requests.missing.push(path),
            Some(info) => {
                if info.shape != shape {
                    let own = &info.shape;
                    requests
                        .mismatched
                        .push(format!("`{path}` has the shape {own}, but the model needs {shape}"));
                }
                requests.used.insert(path);
            }
        }
    }

    /// Loads a tensor of a shape. If there is none, or of another shape, returns a placeholder, and
    /// [`finish`](Self::finish) fails.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let query = dict.get("encoder.layer.0.attention.self.query.weight", [384, 384])?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::tensor`], except for a missing tensor.
    pub fn get(&self, name: &str, shape: impl Into<Shape>) -> Result<Tensor> {
        let is_float =
            |info: &TensorInfo| matches!(info.stored.name(), "f32" | "f16" | "bf16" | "f64");
        let dtype = self.floats.filter(|_| self.info(name).is_none_or(is_float));
        self.load("StateDict::get", name, shape.into(), dtype)
    }

    /// Loads a tensor of a shape, converted to a type as by [`Weights::tensor_as`].
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let bias = dict.get_as("pooler.dense.bias", [384], scry_models::DType::F32)?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::tensor_as`], except for a missing tensor.
    pub fn get_as(&self, name: &str, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
        self.load("StateDict::get_as", name, shape.into(), Some(dtype))
    }

    /// Loads a tensor of a shape if it exists.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let bias = dict.find("pooler.dense.bias", [384])?; // `None` if there is none
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`StateDict::get`].
    pub fn find(&self, name: &str, shape: impl Into<Shape>) -> Result<Option<Tensor>> {
        self.info(name).is_some().then(|| self.get(name, shape)).transpose()
    }

    /// Marks tensors that the model does not need, so that [`finish`](Self::finish)
    /// does not report them: the one of this
    /// name, and all below this path.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// dict.ignore("pooler"); // `pooler.dense.weight` and `pooler.dense.bias`
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn ignore(&self, name: &str) {
        let path = self.path(name);
        let below = format!("{path}.");
        let names = self.weights.tensors().map(TensorInfo::name);
        let ignored = names.filter(|name| *name == path || name.starts_with(&below));
        self.requests.borrow_mut().used.extend(ignored.map(str::to_owned));
    }

    fn load(
        &self,
        call: &'static str,
        name: &str,
        shape: Shape,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let path = self.path(name);
        let mut requests = self.requests.borrow_mut();
        let Some(info) = self.weights.info(&path) else {
            requests.missing.push(path);
            return self.placeholder(shape, dtype.unwrap_or(DType::F32));
        };
        if info.shape == shape {
            requests.used.insert(path.clone());
            return self.weights.load(call, &path, dtype, &self.device);
        }
        requests
            .mismatched
            .push(format!("`{path}` has the shape {}, but the model needs {shape}", info.shape));
        requests.used.insert(path);
        let own = info.stored.dtype().filter(|own| !own.is_quantized());
        self.placeholder(shape, dtype.or(own).unwrap_or(DType::F32))
    }

    fn placeholder(&self, shape: Shape, dtype: DType) -> Result<Tensor> {
        Ok(if dtype.is_float() {
            Tensor::full(shape, f64::NAN, dtype, &self.device)?
        } else {
            Tensor::zeros(shape, dtype, &self.device)?
        })
    }

    /// Checks that every requested tensor existed with its shape, and that every tensor below this
    /// path was requested or [ignored](Self::ignore).
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.safetensors")?;
    /// let dict = weights.state_dict(&gpu);
    /// let weight = dict.get("pooler.dense.weight", [384, 384])?;
    /// let error = dict.finish().unwrap_err();
    /// println!("{} tensors are unexpected", error.unexpected().len());
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if all names fit, but shapes do not; [`ErrorKind::Keys`] otherwise,
    /// with [`Error::missing`] and [`Error::unexpected`]. The text has all problems.
    pub fn finish(self) -> Result<()> {
        let mut requests = self.requests.borrow_mut();
        requests.is_finished = true;
        let names = self.weights.tensors().map(TensorInfo::name);
        let unexpected: Vec<String> = names
            .filter(|name| name.starts_with(&self.prefix) && !requests.used.contains(*name))
            .map(str::to_owned)
            .collect();
        let Requests { missing, mismatched, .. } = &*requests;
        if missing.is_empty() && mismatched.is_empty() && unexpected.is_empty() {
            return Ok(());
        }
        let mut problem = "the tensors do not fit the model".to_owned();
        list(&mut problem, "missing", missing.iter().map(|name| format!("`{name}`")));
        list(&mut problem, "shape mismatch", mismatched.iter().cloned());
        list(&mut problem, "unexpected", unexpected.iter().map(|name| format!("`{name}`")));
        let has_names = !missing.is_empty() || !unexpected.is_empty();
        let kind = if has_names { ErrorKind::Keys } else { ErrorKind::Shape };
        let help = "use weights of this model, or call `StateDict::ignore` for tensors that it \
                    does not use";
        Err(Error::new("StateDict::finish", kind, problem, help)
            .in_file(&self.weights.files[0].path)
            .with_names(missing.clone(), unexpected))
    }
}

/// Appends a list to a text, if it is not empty.
fn list(text: &mut String, title: &str, names: impl ExactSizeIterator<Item = String>) {
    let count = names.len();
    if count == 0 {
        return;
    }
    let listed: Vec<String> = names.take(MAX_LISTED).collect();
    // Writing to a string cannot fail.
    let _ = write!(text, "; {title} ({count}): {}", listed.join(", "));
    if count > MAX_LISTED {
        let _ = write!(text, " and {} more", count - MAX_LISTED);
    }
}
