//! `override` declarations: checks the values given for them, and applies them to a module.

use std::collections::BTreeMap;

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::{PipelineConstantError, process_overrides};
use naga::valid::{EntryPointError, ModuleInfo, ValidationError};
use naga::{Expression, Literal, Module, Scalar, ScalarKind, Span, TypeInner};

use crate::similar_names::nearest_name;
use crate::wgsl::naga::diagnostics;
use crate::wgsl::report::Report;
use crate::wgsl::validate::MAX_WORKGROUP;
use crate::{Override, OverrideValue, ShaderErrorKind};

/// The overrides that a source declares.
pub(crate) struct Overrides {
    list: Vec<Declaration>,
}

struct Declaration {
    name: String,
    id: Option<u16>,
    scalar: Scalar,
    span: Span,
    has_default: bool,
    /// The default, if it is a literal.
    default: Option<f64>,
}

impl Declaration {
    /// Returns the key of the override in naga.
    fn key(&self) -> String {
        self.id.map_or_else(|| self.name.clone(), |id| id.to_string())
    }

    /// Returns the name for messages, with the `@id` if there is one.
    fn quoted_name(&self) -> String {
        match self.id {
            Some(id) => format!("`{}` (@id({id}))", self.name),
            None => format!("`{}`", self.name),
        }
    }
}

/// The values given, by the key of the override in naga.
pub(crate) type Values = BTreeMap<String, f64>;

impl Overrides {
    /// Lists the named overrides of a module, in source order.
    pub(crate) fn collect(module: &Module) -> Self {
        let mut list = Vec::new();
        for (handle, declaration) in module.overrides.iter() {
            let span = module.overrides.get_span(handle);
            if let TypeInner::Scalar(scalar) = module.types[declaration.ty].inner
                && let Some(name) = declaration.name.clone()
            {
                list.push(Declaration {
                    name,
                    id: declaration.id,
                    scalar,
                    span,
                    has_default: declaration.init.is_some(),
                    default: declaration.init.and_then(|init| literal_value(module, init)),
                });
            }
        }
        list.sort_by_key(|d| d.span.to_range().map_or(usize::MAX, |range| range.start));
        Self { list }
    }

    /// Converts the values given. Rejects unknown overrides, values that do not fit, and a second
    /// value for an override.
    pub(crate) fn resolve(&self, given: &[(String, OverrideValue)]) -> Result<Values, Box<Report>> {
        let mut values = Values::default();
        for (key, value) in given {
            let declaration = self.find(key)?;
            let value = to_number(declaration, *value)?;
            let key = declaration.key();
            if values.contains_key(&key) {
                let name = declaration.quoted_name();
                return Err(override_error(format!("override {name} is given twice"), declaration));
            }
            values.insert(key, value);
        }
        Ok(values)
    }

    fn find(&self, key: &str) -> Result<&Declaration, Box<Report>> {
        let id: Option<u16> = key.parse().ok();
        let hit = |d: &&Declaration| d.name == key || (d.id.is_some() && d.id == id);
        self.list.iter().find(hit).ok_or_else(|| {
            let names: Vec<String> =
                self.list.iter().take(16).map(Declaration::quoted_name).collect();
            let mut message = format!("no override `{key}`: the source declares ");
            match names.is_empty() {
                true => message.push_str("none"),
                false => message.push_str(&names.join(", ")),
            }
            if let Some(near) = nearest_name(key, self.list.iter().map(|it| it.name.as_str())) {
                message.push_str(&format!("; did you mean `{near}`?"));
            }
            Box::new(Report::new(ShaderErrorKind::Override, message))
        })
    }

    /// Returns the overrides for the interface.
    pub(crate) fn into_interface(self, values: &Values) -> Vec<Override> {
        self.list
            .into_iter()
            .map(|d| Override {
                value: values.get(&d.key()).copied().or(d.default),
                ty: type_name(d.scalar),
                name: d.name,
                id: d.id,
            })
            .collect()
    }
}

/// Returns the value of an initialiser that is a literal.
fn literal_value(module: &Module, init: naga::Handle<Expression>) -> Option<f64> {
    let Expression::Literal(literal) = module.global_expressions[init] else {
        return None;
    };
    match literal {
        Literal::F64(v) => Some(v),
        Literal::F32(v) => Some(v.into()),
        Literal::F16(v) => Some(v.into()),
        Literal::U16(v) => Some(v.into()),
        Literal::I16(v) => Some(v.into()),
        Literal::U32(v) => Some(v.into()),
        Literal::I32(v) => Some(v.into()),
        Literal::Bool(v) => Some(v.into()),
        Literal::U64(_) | Literal::I64(_) => None,
        Literal::AbstractInt(_) | Literal::AbstractFloat(_) => None,
    }
}

fn type_name(scalar: Scalar) -> String {
    let letter = match scalar.kind {
        ScalarKind::Bool => return "bool".into(),
        ScalarKind::Sint | ScalarKind::AbstractInt => 'i',
        ScalarKind::Uint => 'u',
        ScalarKind::Float | ScalarKind::AbstractFloat => 'f',
    };
    format!("{letter}{}", u32::from(scalar.width) * 8)
}

/// Returns the value as a number. Rejects one outside of the range of the override's type, and a
/// fraction for an integer.
fn to_number(declaration: &Declaration, given: OverrideValue) -> Result<f64, Box<Report>> {
    let scalar = declaration.scalar;
    let (name, ty) = (declaration.quoted_name(), type_name(scalar));
    let cannot_be = |what: String| {
        let message = format!("override {name} of type {ty} cannot be {given}: {what}");
        Err(override_error(message, declaration))
    };
    let value = match given {
        OverrideValue::Number(value) => value,
        OverrideValue::Bool(value) if scalar.kind == ScalarKind::Bool => return Ok(value.into()),
        OverrideValue::Bool(_) => return cannot_be("give a number".into()),
    };
    if !value.is_finite() {
        return cannot_be("the value must be finite".into());
    }
    let bits = i32::from(scalar.width) * 8;
    let (low, high) = match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) if value == 0.0 || value == 1.0 => return Ok(value),
        (ScalarKind::Bool, _) => return cannot_be("give true or false, or 0 or 1".into()),
        (ScalarKind::Float, 2) => (-65504.0, 65504.0),
        (ScalarKind::Float, 4) => (-f64::from(f32::MAX), f64::from(f32::MAX)),
        (ScalarKind::Float, _) => return Ok(value),
        (ScalarKind::Sint, _) => (-2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0),
        _ => (0.0, 2f64.powi(bits) - 1.0),
    };
    if scalar.kind != ScalarKind::Float && value.fract() != 0.0 {
        return cannot_be("the value must be a whole number".into());
    }
    if value < low || value > high {
        return cannot_be(match scalar.kind {
            ScalarKind::Float => format!("the range is {low:e} to {high:e}"),
            _ => format!("the range is {low} to {high}"),
        });
    }
    Ok(value)
}

fn override_error(message: String, declaration: &Declaration) -> Box<Report> {
    let report = Report::new(ShaderErrorKind::Override, message);
    Box::new(report.at(declaration.span, "declared here"))
}

/// Returns the names of the overrides without a default.
pub(crate) fn without_default(module: &Module) -> Vec<String> {
    let overrides = module.overrides.iter().map(|(_, declared)| declared);
    let required = overrides.filter(|declared| declared.init.is_none());
    required.filter_map(|declared| declared.name.clone()).collect()
}

/// Applies the values to a pruned module; rejects it if a required one is missing.
pub(crate) fn apply(module: Module, values: &Values) -> Result<Module, Box<Report>> {
    if module.overrides.is_empty() {
        return Ok(module);
    }
    let declared = Overrides::collect(&module);
    let missing = |d: &&Declaration| !d.has_default && !values.contains_key(&d.key());
    if let Some(declaration) = declared.list.iter().find(missing) {
        let (name, ty) = (declaration.quoted_name(), type_name(declaration.scalar));
        let message = format!("override {name} of type {ty} has no default and no value is given");
        return Err(override_error(message, declaration));
    }
    let keys = declared.list.iter().map(Declaration::key);
    let constants: PipelineConstants =
        keys.filter_map(|key| values.get(&key).map(|value| (key, *value))).collect();
    let unused = ModuleInfo::default();
    let (module, _) =
        process_overrides(&module, &unused, None, &constants).map_err(|error| to_report(&error))?;
    Ok(module.into_owned())
}

/// Reports naga's errors about values that are valid for their types, but not for the kernel.
fn to_report(error: &PipelineConstantError) -> Box<Report> {
    Box::new(match error {
        PipelineConstantError::ValidationError(error) if is_about_workgroups(error.as_inner()) => {
            let message = format!(
                "the overrides make a dimension of @workgroup_size larger than {MAX_WORKGROUP}"
            );
            Report::new(ShaderErrorKind::Override, message)
        }
        PipelineConstantError::ValidationError(error) => {
            let mut report = diagnostics::validation(error);
            report.kind = ShaderErrorKind::Override;
            report.note("note: the kernel is invalid with the values of its overrides")
        }
        PipelineConstantError::NegativeWorkgroupSize => Report::new(
            ShaderErrorKind::Override,
            "the overrides make a dimension of @workgroup_size zero, negative or no integer",
        ),
        other => Report::new(
            ShaderErrorKind::Override,
            format!("the kernel is invalid with the values of its overrides: {other}"),
        ),
    })
}

fn is_about_workgroups(error: &ValidationError) -> bool {
    let ValidationError::EntryPoint { source, .. } = error else {
        return false;
    };
    matches!(source, EntryPointError::OutOfRangeWorkgroupSize)
}
