//! Tables of FROM.

use datafusion::sql::sqlparser::ast::{TableAlias, TableAliasColumnDef, TableFactor};

use super::{CheckResult, GrammarChecker, refuse, refuse_any, refuse_if, refuse_some, spans};

const SAMPLE: &str = "TABLESAMPLE (append the step `sample(fraction, seed)`)";

impl<'a> GrammarChecker<'a> {
    pub(super) fn table(&mut self, table: &'a TableFactor) -> CheckResult {
        let span = spans::table_span(table);
        match table {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let function = format!("the table function `{name}`");
                refuse_some(args.as_ref(), &function, span)?;
                refuse_any(with_hints, "a hint for a table", span)?;
                refuse_some(version.as_ref(), "a version of a table (AS OF)", span)?;
                refuse_if(*with_ordinality, "WITH ORDINALITY (use `row_number=`)", span)?;
                refuse_any(partitions, "PARTITION", span)?;
                refuse_some(json_path.as_ref(), "a path into a table", span)?;
                refuse_some(sample.as_ref(), SAMPLE, span)?;
                refuse_any(index_hints, "a hint for an index", span)?;
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
                refuse_if(*lateral, "LATERAL", span)?;
                refuse_some(sample.as_ref(), SAMPLE, span)?;
                self.queries.push(subquery);
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                // The parser limits the depth of nested joins.
                self.table(&table_with_joins.relation)?;
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::TableFunction { .. } | TableFactor::Function { .. } => {
                refuse("a table function", span)
            }
            TableFactor::UNNEST { .. } => refuse("a table of UNNEST", span),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                refuse("a table of JSON", span)
            }
            TableFactor::Pivot { .. } => refuse("PIVOT", span),
            TableFactor::Unpivot { .. } => refuse("UNPIVOT", span),
            TableFactor::MatchRecognize { .. } => refuse("MATCH_RECOGNIZE", span),
            TableFactor::XmlTable { .. } => refuse("a table of XML", span),
            TableFactor::SemanticView { .. } => refuse("SEMANTIC_VIEW", span),
        }
    }
}

pub(super) fn table_alias(alias: &TableAlias) -> CheckResult {
    let TableAlias {
        explicit: _,
        name,
        columns,
        at,
    } = alias;
    refuse_some(at.as_ref(), "AT after a table", name.span)?;
    for TableAliasColumnDef { name, data_type } in columns {
        refuse_some(data_type.as_ref(), "a column type in a table alias", name.span)?;
    }
    Ok(())
}
