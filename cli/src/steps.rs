//! `pushdown steps`: every step with its arguments.

use std::io::{self, Write};

use clap::Args;
use pushdown::step::{ALL, StepInfo};
use serde_json::json;

/// List every step with its arguments
#[derive(Debug, Args)]
pub(crate) struct Steps {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Steps {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &steps())?;
            writeln!(out)?;
            return Ok(());
        }
        for (index, info) in ALL.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            text(&mut out, info)?;
        }
        Ok(())
    }
}

/// Every step with its arguments, as JSON.
pub fn steps() -> serde_json::Value {
    ALL.iter().map(as_json).collect()
}

fn text(out: &mut impl Write, info: &StepInfo) -> io::Result<()> {
    let random = if info.is_random { ", random" } else { "" };
    writeln!(out, "{}   {} -> {}{random}", info.name, info.input, info.output)?;
    writeln!(out, "    {}", info.summary)?;
    let width = info
        .params
        .iter()
        .map(|param| param.name.len())
        .max()
        .unwrap_or_default();
    for param in info.params {
        let named = if param.named_only { " (by name)" } else { "" };
        writeln!(
            out,
            "      {:width$}  {}{named}: {}",
            param.name, param.form, param.summary
        )?;
    }
    Ok(())
}

fn as_json(info: &StepInfo) -> serde_json::Value {
    let params: Vec<_> = info
        .params
        .iter()
        .map(|param| {
            json!({"name": param.name, "form": param.form, "summary": param.summary, "named_only": param.named_only})
        })
        .collect();
    json!({
        "name": info.name, "summary": info.summary, "input": info.input, "output": info.output,
        "random": info.is_random, "params": params,
    })
}
