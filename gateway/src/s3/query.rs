//! Reads query parameters without decoding them.

/// The values of a query parameter, still percent-encoded. A parameter without `=` has the empty value.
pub fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query.split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_exact_name() {
        let found: Vec<_> = values("a=1&ba=2&a&a=x=y", "a").collect();
        assert_eq!(found, ["1", "", "x=y"]);
    }
}
