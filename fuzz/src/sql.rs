//! Any bytes as SQL: as text, or as choices of a grammar. Planning it over a small object ends soon, with a plan or an error of the
//! query.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use pushdown::{ErrorKind, Pipeline};
use rustix::time::{ClockId, clock_gettime};

use crate::{RUNTIME, context};

/// An object of three columns.
const OBJECT: &[u8] = b"n,m,text\n1,2,a\n2,3,b\n3,,c\n";
/// Maximum CPU time of one query in a debug build: the heaviest ones that the limits accept take half of it.
const MAX_CPU_TIME: Duration = Duration::from_secs(10);
/// Length of a generated text after which only its shortest forms follow. A pipeline has at most 16 KiB.
const MAX_TEXT_BYTES: usize = 8 << 10;
/// Maximum nesting of a generated text.
const MAX_DEPTH: usize = 12;

const COLUMNS: [&str; 8] = ["n", "m", "text", "*", "object.n", "t.n", "x", "count(*)"];
const NAMES: [&str; 6] = ["object", "a", "b", "c", "d", "\"A\""];
const OPERATORS: [&str; 16] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "//",
    "^",
    "=",
    "<>",
    "<",
    ">=",
    "and",
    "or",
    "||",
    "is distinct from",
    "~",
];
const FUNCTIONS: [&str; 24] = [
    "abs",
    "greatest",
    "coalesce",
    "concat",
    "position",
    "substring",
    "trim",
    "floor",
    "ceil",
    "round",
    "upper",
    "length",
    "regexp_replace",
    "replace",
    "nullif",
    "make_array",
    "sum",
    "min",
    "max",
    "avg",
    "count",
    "row_number",
    "date_trunc",
    "struct",
];
const LITERALS: [&str; 12] = [
    "1",
    "0",
    "-1",
    "1.5",
    "1e300",
    "9223372036854775807",
    "'a'",
    "'%a_'",
    "null",
    "true",
    "date '2024-01-01'",
    "interval '1 day'",
];
const TYPES: [&str; 8] = [
    "bigint",
    "int",
    "double",
    "varchar",
    "date",
    "timestamp",
    "decimal(38, 10)",
    "boolean",
];

/// Checks a query. The first byte chooses whether the rest is its text or the choices of a grammar.
pub fn sql(input: &[u8]) {
    check(input);
}

/// Checks a query. Returns whether it was planned.
pub(crate) fn check(input: &[u8]) -> bool {
    let Some((choice, rest)) = input.split_first() else {
        return false;
    };
    let query = if choice % 4 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let mut writer = QueryWriter {
            choices: rest,
            text: String::new(),
        };
        writer.query(0);
        writer.text
    };
    let before = clock_gettime(ClockId::ThreadCPUTime);
    let planned = plan(&query);
    let after = clock_gettime(ClockId::ThreadCPUTime);
    let spent = Duration::try_from(after)
        .unwrap_or_default()
        .saturating_sub(Duration::try_from(before).unwrap_or_default());
    assert!(spent < MAX_CPU_TIME, "{spent:?} for {query}");
    match planned {
        Ok(()) => true,
        // The object is good, so a panic is the planner's.
        Err(error) => {
            assert!(error.kind() != ErrorKind::Undecodable, "{error:?} for {query}");
            assert!(!error.to_string().contains("panicked"), "{error:?} for {query}");
            false
        }
    }
}

fn plan(query: &str) -> pushdown::Result<()> {
    // In the language of pipelines, a quote or a backslash is escaped by a backslash.
    let escaped = query.replace('\\', "\\\\").replace('"', "\\\"");
    let pipeline = Pipeline::parse(&format!("sql(\"{escaped}\", format=csv)"))?;
    let context = context();
    let planning = pipeline.scan(0..1, Arc::new(Bytes::from_static(OBJECT)), &context);
    match &*RUNTIME {
        Some(runtime) => runtime.block_on(planning).map(drop),
        None => panic!("cannot start threads"),
    }
}

/// Writes a query. Each byte is a choice; without bytes, all choices are the first ones, which end the text.
struct QueryWriter<'a> {
    choices: &'a [u8],
    text: String,
}

impl QueryWriter<'_> {
    fn choice(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.choices.split_first() else {
            return 0;
        };
        self.choices = rest;
        if self.text.len() > MAX_TEXT_BYTES {
            return 0;
        }
        usize::from(*first) % count
    }

    fn one_of(&mut self, texts: &[&str]) {
        let index = self.choice(texts.len());
        self.text.push_str(texts[index]);
    }

    /// A list of up to `max` items.
    fn list(&mut self, max: usize, separator: &str, mut item: impl FnMut(&mut Self)) {
        for index in 0..=self.choice(max) {
            if index > 0 {
                self.text.push_str(separator);
            }
            item(self);
        }
    }

    fn query(&mut self, depth: usize) {
        if depth < MAX_DEPTH && self.choice(3) == 1 {
            self.text.push_str("with ");
            let mut index = 0;
            self.list(32, ", ", |writer| {
                // A few names are reused, so that they shadow each other.
                if writer.choice(8) == 1 {
                    writer.one_of(&NAMES);
                } else {
                    writer.text.push_str(["a", "b", "c", "d"][index % 4]);
                    writer.text.push_str(&index.to_string());
                }
                index += 1;
                writer.text.push_str(" as (");
                writer.query(depth + 2);
                writer.text.push(')');
            });
            self.text.push(' ');
        }
        self.list(6, "", |writer| {
            if writer
                .text
                .ends_with(|character: char| character != '(' && character != ' ')
            {
                writer.one_of(&[
                    " union all ",
                    " union ",
                    " union by name ",
                    " intersect ",
                    " except ",
                ]);
            }
            writer.select(depth);
        });
        if self.choice(4) == 1 {
            self.text.push_str(" order by ");
            self.list(120, ", ", |writer| writer.expression(depth + 1));
        }
        if self.choice(8) == 1 {
            self.text.push_str(" limit 3");
        }
    }

    fn select(&mut self, depth: usize) {
        if self.choice(16) == 1 {
            self.text.push_str("values ");
            self.list(200, ", ", |writer| {
                writer.text.push('(');
                writer.one_of(&LITERALS);
                writer.text.push(')');
            });
            return;
        }
        self.text.push_str("select ");
        match self.choice(12) {
            1 => self.text.push_str("distinct "),
            2 => {
                self.text.push_str("distinct on (");
                self.list(4, ", ", |writer| writer.expression(depth + 1));
                self.text.push_str(") ");
            }
            _ => {}
        }
        self.list(20, ", ", |writer| {
            writer.expression(depth + 1);
            writer.one_of(&["", " as n", " as m", " as x"]);
        });
        self.text.push_str(" from ");
        self.table(depth);
        if self.choice(32) == 1 {
            self.text.push_str(" join ");
            self.table(depth);
        }
        if self.choice(2) == 1 {
            self.text.push_str(" where ");
            self.expression(depth + 1);
        }
        if self.choice(6) == 1 {
            self.text.push_str(" group by ");
            self.list(20, ", ", |writer| {
                writer.one_of(&["", "cube", "rollup", ""]);
                writer.text.push('(');
                writer.expression(depth + 1);
                writer.text.push(')');
            });
        }
        if self.choice(12) == 1 {
            self.text.push_str(" having ");
            self.expression(depth + 1);
        }
        if self.choice(12) == 1 {
            self.text.push_str(" window w as (order by ");
            self.expression(depth + 1);
            self.text.push(')');
        }
    }

    fn table(&mut self, depth: usize) {
        match self.choice(6) {
            1 if depth < MAX_DEPTH => {
                self.text.push('(');
                self.query(depth + 2);
                self.text.push_str(") t");
            }
            2 => {
                let (name, number) = (self.choice(4), self.choice(32));
                self.text.push_str(["a", "b", "c", "d"][name]);
                self.text.push_str(&number.to_string());
            }
            3 => {
                self.text.push_str("((object)) t");
            }
            4 => self.one_of(&NAMES),
            _ => self.text.push_str("object"),
        }
    }

    fn expression(&mut self, depth: usize) {
        if depth >= MAX_DEPTH {
            return self.one_of(&COLUMNS);
        }
        match self.choice(14) {
            0 | 1 => self.one_of(&COLUMNS),
            2 => self.one_of(&LITERALS),
            3 | 4 => self.list(24, " ", |writer| {
                writer.expression(depth + 1);
                writer.text.push(' ');
                writer.one_of(&OPERATORS);
                writer.text.push(' ');
                writer.expression(depth + 2);
            }),
            5 | 6 => {
                self.one_of(&FUNCTIONS);
                self.text.push('(');
                self.list(6, ", ", |writer| writer.expression(depth + 1));
                self.text.push(')');
                self.one_of(&[
                    "",
                    "",
                    " over ()",
                    " over w",
                    " over (partition by n order by m)",
                    " over (order by n rows between 3 preceding and current row)",
                ]);
            }
            7 => {
                self.text.push_str("case");
                self.list(30, "", |writer| {
                    writer.text.push_str(" when ");
                    writer.expression(depth + 1);
                    writer.text.push_str(" then ");
                    writer.expression(depth + 2);
                });
                self.text.push_str(" end");
            }
            8 => {
                self.expression(depth + 1);
                self.one_of(&[" in (", " not in ("]);
                self.list(200, ", ", |writer| writer.one_of(&LITERALS));
                self.text.push(')');
            }
            9 => {
                self.expression(depth + 1);
                self.one_of(&[" between ", " not between "]);
                self.expression(depth + 2);
                self.text.push_str(" and ");
                self.expression(depth + 2);
            }
            10 => {
                self.one_of(&["(", "exists (", "n in (", "n > all ("]);
                self.query(depth + 2);
                self.text.push(')');
            }
            11 => {
                self.text.push_str("cast(");
                self.expression(depth + 1);
                self.text.push_str(" as ");
                self.one_of(&TYPES);
                self.text.push(')');
            }
            12 => {
                self.expression(depth + 1);
                self.one_of(&[" like ", " ilike ", " similar to ", " is not null and text ~ "]);
                self.one_of(&["'%a%b_'", "'(a|b)*c'", "'\\w{9}'", "text"]);
            }
            _ => {
                self.one_of(&["not ", "-", "[", "("]);
                let close = match self.text.chars().last() {
                    Some('[') => "]",
                    Some('(') => ")",
                    _ => "",
                };
                self.expression(depth + 1);
                self.text.push_str(close);
            }
        }
    }
}
