//! Tables of FROM.

use datafusion::sql::sqlparser::ast::{TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins};

use super::{
    CheckResult, GrammarChecker, UnsupportedSyntax, refuse, refuse_any, refuse_if, refuse_some, spans,
};

const SAMPLE: &str = "TABLESAMPLE (append the step `sample(fraction, seed)`)";

impl<'a> GrammarChecker<'a> {
    /// A table of FROM. Joins are refused here, since planning them takes time quadratic in the columns of all tables.
    pub(super) fn tables(&mut self, tables: &'a [TableWithJoins]) -> CheckResult {
        let joined = tables.get(1).map(|tables| &tables.relation);
        let joined = joined.or_else(|| Some(&tables.first()?.joins.first()?.relation));
        if let Some(joined) = joined {
            return Err(UnsupportedSyntax {
                message: "a join (also INTERSECT and EXCEPT) is not supported: its memory has no bound by the size of the object"
                    .to_owned(),
                span: spans::table_span(joined),
            });
        }
        tables
            .first()
            .map_or(Ok(()), |tables| self.table(&tables.relation))
    }

    fn table(&mut self, table: &'a TableFactor) -> CheckResult {
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
                self.expansion.add_table(self.place, name, span);
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
                self.tables(std::slice::from_ref(table_with_joins))?;
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
