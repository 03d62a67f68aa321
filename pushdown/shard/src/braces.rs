//! Expansion of braces in the names of shards, as shells do it.

use crate::{ShardError, name::quoted};

/// Most texts that one text expands to.
const MAX_TEXTS: usize = 1_000_000;
/// Most bytes that one text expands to.
const MAX_BYTES: usize = 256 << 20;
/// Most braces within braces.
const MAX_DEPTH: usize = 8;
/// Most digits of the ends of a range.
const MAX_DIGITS: usize = 18;

/// Expands braces: `{000..120}` is each number of a range, with as many digits, and `{a,b}` each of a list. A range may have a
/// step, `{0..100..10}`, run downwards, and be of letters. Lists may contain braces. The result is in the order of a shell.
///
/// ```
/// let keys = pushdown_shard::expand_braces("{train,val}-{08..10}.tar")?;
/// assert_eq!(keys.join(" "), "train-08.tar train-09.tar train-10.tar val-08.tar val-09.tar val-10.tar");
/// # Ok::<(), pushdown_shard::ShardError>(())
/// ```
///
/// # Errors
/// [`ShardError::InvalidBraces`] for braces that do not match or are neither list nor range, and if there are more than 1,000,000
/// results, or more than 256 MiB of them.
pub fn expand_braces(text: &str) -> Result<Vec<String>, ShardError> {
    let mut parser = Parser { rest: text };
    parser.sequence(0).map_err(|reason| ShardError::InvalidBraces {
        text: quoted(text.as_bytes()),
        reason,
    })
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Expands up to the end or, within braces, up to the next `,` or `}`.
    fn sequence(&mut self, depth: usize) -> Result<Vec<String>, &'static str> {
        let mut texts = vec![String::new()];
        loop {
            let is_special = |character| match character {
                '{' | '}' => true,
                ',' => depth > 0,
                _ => false,
            };
            let end = self.rest.find(is_special).unwrap_or(self.rest.len());
            let (literal, rest) = self.rest.split_at(end);
            self.rest = rest;
            texts = product(&texts, &[literal.to_owned()])?;
            if let Some(inside) = self.rest.strip_prefix('{') {
                self.rest = inside;
                texts = product(&texts, &self.braces(depth + 1)?)?;
            } else if depth == 0 && !self.rest.is_empty() {
                return Err("expected a `{` before each `}`");
            } else {
                return Ok(texts);
            }
        }
    }

    /// Expands a range or a list, whose `{` has been read.
    fn braces(&mut self, depth: usize) -> Result<Vec<String>, &'static str> {
        if depth > MAX_DEPTH {
            return Err("expected at most 8 braces within each other, found more");
        }
        if let Some(range) = self.range() {
            return expand_range(range);
        }
        let mut texts = Vec::new();
        let mut is_list = false;
        loop {
            let more = self.sequence(depth)?;
            check_size(texts.len() + more.len(), length(&texts) + length(&more))?;
            texts.extend(more);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                is_list = true;
            } else if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return if is_list {
                    Ok(texts)
                } else {
                    Err("expected a list `{a,b}` or a range `{1..9}`")
                };
            } else {
                return Err("expected a `}` after each `{`");
            }
        }
    }

    /// Reads the range in front, and its `}`. `None` if there is a list.
    fn range(&mut self) -> Option<&'a str> {
        let (range, rest) = self.rest.split_once('}')?;
        if range.contains(['{', ',']) || !range.contains("..") {
            return None;
        }
        self.rest = rest;
        Some(range)
    }
}

fn expand_range(range: &str) -> Result<Vec<String>, &'static str> {
    let invalid = "expected a range `{FIRST..LAST}` or `{FIRST..LAST..STEP}` of numbers or letters";
    let parts: Vec<&str> = range.split("..").collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, Some(1)),
        [first, last, step] => (first, last, number(step)),
        _ => return Err(invalid),
    };
    let step = step.filter(|step| *step > 0).ok_or(invalid)?;
    if let (Some(from), Some(to)) = (number(first), number(last)) {
        let is_padded = [first, last]
            .iter()
            .any(|end| end.len() > 1 && end.starts_with('0'));
        let width = if is_padded { first.len().max(last.len()) } else { 0 };
        let numbers = steps(from, to, step)?;
        Ok(numbers.map(|number| format!("{number:0width$}")).collect())
    } else if let (Some(from), Some(to)) = (letter(first), letter(last)) {
        let codes = steps(u64::from(from), u64::from(to), step)?;
        let letters = codes.filter_map(|code| u8::try_from(code).ok());
        Ok(letters.map(|letter| char::from(letter).to_string()).collect())
    } else {
        Err(invalid)
    }
}

fn number(text: &str) -> Option<u64> {
    let is_number = text.len() <= MAX_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    }
}

/// The numbers between `from` and `to`, both included, upwards or downwards.
fn steps(from: u64, to: u64, step: u64) -> Result<impl Iterator<Item = u64>, &'static str> {
    let last = from.abs_diff(to) / step;
    check_size(usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1), 0)?;
    Ok((0..=last).map(move |index| {
        if from <= to {
            from + index * step
        } else {
            from - index * step
        }
    }))
}

/// Each of `starts` followed by each of `ends`.
fn product(starts: &[String], ends: &[String]) -> Result<Vec<String>, &'static str> {
    check_size(
        starts.len().saturating_mul(ends.len()),
        length(starts)
            .saturating_mul(ends.len())
            .saturating_add(length(ends).saturating_mul(starts.len())),
    )?;
    let pairs = starts.iter().flat_map(|start| {
        ends.iter()
            .map(move |end| [start.as_str(), end.as_str()].concat())
    });
    Ok(pairs.collect())
}

fn length(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

fn check_size(texts: usize, bytes: usize) -> Result<(), &'static str> {
    if texts > MAX_TEXTS {
        Err("expected at most 1,000,000 results, found more")
    } else if bytes > MAX_BYTES {
        Err("expected at most 256 MiB of results, found more")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand_braces(text).unwrap().join(" ")
    }

    fn refused(text: &str) -> String {
        expand_braces(text).unwrap_err().to_string()
    }

    /// The expected texts are those of bash 5.2.
    #[test]
    fn braces_expand_as_in_a_shell() {
        for (text, expected) in [
            ("", ""),
            ("a.tar", "a.tar"),
            ("a,b", "a,b"),
            ("{0..3}", "0 1 2 3"),
            ("{08..11}", "08 09 10 11"),
            ("{9..011}", "009 010 011"),
            ("{3..1}", "3 2 1"),
            ("{0..10..4}", "0 4 8"),
            ("{10..0..4}", "10 6 2"),
            ("{a..c}{1..2}", "a1 a2 b1 b2 c1 c2"),
            ("{c..a}", "c b a"),
            ("x{,y}", "x xy"),
            ("{a,{1..2},{x,y}z}.tar", "a.tar 1.tar 2.tar xz.tar yz.tar"),
            ("{a,b..c}", "a b..c"),
            ("{5..5}", "5"),
        ] {
            assert_eq!(expanded(text), expected, "{text}");
        }
    }

    #[test]
    fn a_million_texts_are_the_most() {
        assert_eq!(expand_braces("{000000..999999}").unwrap().len(), MAX_TEXTS);
        let text = expand_braces("s3://b/{0..9}/{0..99999}").unwrap();
        assert_eq!(text.last().map(String::as_str), Some("s3://b/9/99999"));
        for text in [
            "{0..1000000}",
            "{0..999}{0..1000}",
            "{0..999999999999999999}",
            "{{0..999999},a}",
        ] {
            assert!(refused(text).contains("1,000,000"), "{text}");
        }
        assert!(refused(&format!("{}{{1..999999}}", "a".repeat(300))).contains("256 MiB"));
        assert!(refused(&"{a,b}".repeat(40)).contains("1,000,000"));
    }

    #[test]
    fn other_braces_are_refused() {
        for text in [
            "{",
            "}",
            "a}",
            "{a",
            "{a,b",
            "{}",
            "{a}",
            "{1..}",
            "{..1}",
            "{1..2..0}",
            "{1..2..3..4}",
            "{1..a}",
            "{aa..b}",
            "{-1..1}",
            "{1..1234567890123456789}",
            "{1...3}",
        ] {
            assert!(refused(text).starts_with("invalid braces in `"), "{text}");
        }
        assert!(refused(&"{a,".repeat(9)).contains("at most 8 braces"));
    }
}
