//! `keys check`: what each key of a file may do.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::access::{Action, Grant, Key, KeyFaults, Keys, ModelNames};

const HEADER: [&str; COLUMNS] = [
    "ACCESS KEY",
    "TENANT",
    "UPSTREAM",
    "SECRETS",
    "MODELS",
    "BUCKET",
    "PREFIX",
    "ALLOWED",
    "PIPELINES",
];
const COLUMNS: usize = 9;

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArguments {
    /// Keys file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CheckArguments {
    /// Prints what each key may do. Fails with all faults of the file.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let loaded = Keys::from_file(&self.file);
        let text = match &loaded {
            loaded if self.json => format!("{:#}\n", as_json(loaded.as_ref())),
            Ok(keys) => as_table(keys),
            Err(_) => String::new(),
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        loaded?;
        Ok(())
    }
}

fn as_table(keys: &Keys) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    for key in keys.all() {
        let mut own = [
            key.access_key().to_owned(),
            key.tenant().to_owned(),
            key.upstream().as_str().to_owned(),
            key.secrets().len().to_string(),
            model_names(key.models()),
        ];
        for grant in grants(&key) {
            let mut cells = own.iter().chain(&grant).cloned();
            rows.push(std::array::from_fn(|_| cells.next().unwrap_or_default()));
            own.fill(String::new());
        }
    }
    aligned(&rows)
}

fn model_names(models: &ModelNames) -> String {
    match models {
        ModelNames::All => "*".to_owned(),
        ModelNames::Named(names) if names.is_empty() => "none".to_owned(),
        ModelNames::Named(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
    }
}

/// Bucket, prefix, actions and pipelines of each grant, or of what is allowed without one.
fn grants(key: &Key) -> Vec<[String; 4]> {
    if key.is_unrestricted() {
        return vec![["*", prefix(""), "what the store allows", "yes"].map(str::to_owned)];
    }
    if key.grants().is_empty() {
        return vec![["none", "", "nothing", "no"].map(str::to_owned)];
    }
    let row = |grant: &Grant| {
        [
            grant.bucket().as_str().to_owned(),
            prefix(grant.prefix()).to_owned(),
            actions(grant).join(" "),
            yes_or_no(grant.allows_pipelines()).to_owned(),
        ]
    };
    key.grants().as_slice().iter().map(row).collect()
}

const fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

const fn prefix(prefix: &str) -> &str {
    if prefix.is_empty() { "(all)" } else { prefix }
}

fn actions(grant: &Grant) -> Vec<&'static str> {
    grant.actions().map(Action::as_str).collect()
}

/// The rows with columns of equal widths, two spaces apart.
fn aligned(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn as_json(loaded: Result<&Keys, &KeyFaults>) -> Value {
    match loaded {
        Ok(keys) => {
            let keys: Vec<_> = keys.all().iter().map(|key| key_as_json(key)).collect();
            json!({ "keys": keys, "faults": [] })
        }
        Err(faults) => json!({ "keys": [], "faults": faults.faults() }),
    }
}

fn key_as_json(key: &Key) -> Value {
    let grant_as_json = |grant: &Grant| {
        json!({
            "bucket": grant.bucket().as_str(),
            "prefix": grant.prefix(),
            "allow": actions(grant),
            "pipelines": grant.allows_pipelines(),
        })
    };
    let grants: Vec<_> = key.grants().as_slice().iter().map(grant_as_json).collect();
    let models: Vec<_> = match key.models() {
        ModelNames::All => vec!["*"],
        ModelNames::Named(names) => names.iter().map(String::as_str).collect(),
    };
    json!({
        "access_key": key.access_key(),
        "tenant": key.tenant(),
        "upstream": key.upstream().as_str(),
        "secrets": key.secrets().len(),
        "models": models,
        "is_unrestricted": key.is_unrestricted(),
        "grants": grants,
    })
}
