"""The query of the table scenarios: 3 of the 16 columns of TPC-H's lineitem, of one year."""

COLUMNS = ["l_orderkey", "l_extendedprice", "l_shipdate"]
FROM, TO = "1994-01-01", "1995-01-01"
PIPELINE = (
    f"select(columns=[{', '.join(COLUMNS)}], "
    f"""where="l_shipdate >= date '{FROM}' and l_shipdate < date '{TO}'")"""
)
