//! Checks that every sentence of `docs/SEMANTICS.md` names an existing test.

use std::{fs, path::Path};

#[test]
fn every_sentence_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("docs/SEMANTICS.md")).expect("the document exists");
    let sentences: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(sentences.len() > 30, "found {} sentences", sentences.len());
    let faults: Vec<String> = sentences
        .into_iter()
        .filter_map(|line| fault(&root, line))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The fault of the reference at the end of `line`, if any.
fn fault(root: &Path, line: &str) -> Option<String> {
    let Some((file, test)) = line
        .strip_suffix('`')
        .and_then(|line| line.rsplit_once(". `"))
        .and_then(|(_, name)| name.split_once("::"))
    else {
        return Some(format!("no test at the end of: {line}"));
    };
    let Ok(source) = fs::read_to_string(root.join(file)) else {
        return Some(format!("no file {file}: {line}"));
    };
    let known = ["fn", "def"]
        .iter()
        .any(|keyword| source.contains(&format!("{keyword} {test}(")));
    (!known).then(|| format!("no test {test} in {file}: {line}"))
}
