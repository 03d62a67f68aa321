//! The table of steps for the generator of `pushdown.ops`.

use pushdown::step::{ALL, StepInfo};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::internal;

/// Positional arguments without a default that may nevertheless be left out: others take their place.
const OPTIONAL: [(&str, &str); 3] = [("resize", "w"), ("resize", "h"), ("normalize", "preset")];

/// Every step with the types of its arguments.
#[pyfunction]
pub(crate) fn steps_json() -> PyResult<String> {
    let steps: PyResult<Vec<Value>> = ALL.iter().map(step).collect();
    Ok(Value::from(steps?).to_string())
}

fn step(info: &StepInfo) -> PyResult<Value> {
    let arguments: PyResult<Vec<Value>> = info
        .params
        .iter()
        .map(|param| {
            let (form, default) = match param.form.split_once(" = ") {
                Some((form, default)) => (form.trim(), Some(default.trim())),
                None => (param.form.trim(), None),
            };
            let (kind, choices) = argument_type(form).ok_or_else(|| {
                internal(format!("{}: {} has an unknown form: {form}", info.name, param.name))
            })?;
            let is_positional = !param.named_only;
            let is_optional = OPTIONAL.contains(&(info.name, param.name));
            Ok(json!({
                "name": param.name, "summary": param.summary, "form": param.form, "type": kind, "choices": choices,
                "default": default.map_or(Value::Null, |default| default_value(kind, &choices, default)),
                "required": is_positional && default.is_none() && !is_optional,
                "positional": is_positional,
            }))
        })
        .collect();
    Ok(json!({
        "name": info.name, "summary": info.summary, "input": info.input, "output": info.output,
        "random": info.is_random, "arguments": arguments?,
    }))
}

/// The type of an argument in Python, and the texts it may be.
fn argument_type(form: &str) -> Option<(&'static str, Vec<&str>)> {
    let parts: Vec<&str> = form.split('|').map(str::trim).collect();
    let name = match form {
        "pixels" | "rows" | "whole number" | "1..100" => "integer",
        "number" | "0..1" => "number",
        "[low, high]" => "number_range",
        "[from, to]" => "integer_range",
        "number or list" => "numbers",
        "names" => "texts",
        "steps" => "pipeline",
        "name" | "SQL" | "name or name@digest" | "tensor or cut:K" | "character" => "text",
        _ if form.ends_with("or [low, high]") => "number_or_range",
        _ if parts == ["true", "false"] => "boolean",
        "imagenet" | "int8" => return Some(("choice", parts)),
        _ if parts.len() > 1 => return Some(("choice", parts)),
        _ => return None,
    };
    Some((name, Vec::new()))
}

/// A default as a value; null for one that depends on the value that the step gets.
fn default_value(name: &str, choices: &[&str], default: &str) -> Value {
    match name {
        "choice" if choices.contains(&default) => default.into(),
        "choice" | "text" | "texts" | "pipeline" => Value::Null,
        _ => serde_json::from_str(default).unwrap_or(Value::Null),
    }
}
