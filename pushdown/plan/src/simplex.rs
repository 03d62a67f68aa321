//! The simplex method on a dense tableau, for programs of a few rows (Dantzig, 1951; Bland's rule, 1977, against cycles).

/// Numbers below this value count as 0.
const EPSILON: f64 = 1e-9;
/// Smaller coefficients are no pivots: they may be rounding errors.
const MIN_PIVOT: f64 = 1e-12;
/// Pivots after which the best solution so far is returned.
const MAX_PIVOTS: usize = 2_000;

/// A linear equation: the sum of the coefficients times the variables equals the right side.
#[derive(Debug, Clone)]
pub(super) struct Equation {
    pub(super) coefficients: Vec<f64>,
    pub(super) right_side: f64,
}

/// Equations over non-negative variables, solved for one variable per equation, the basis. All other variables are 0.
#[derive(Debug)]
pub(super) struct Tableau {
    /// Each row is scaled so that its basic variable has the coefficient 1; no other row has that variable.
    rows: Vec<Equation>,
    basis: Vec<usize>,
}

impl Tableau {
    /// `basis` names one variable per row. The solution for it has to be feasible: no variable below 0.
    pub(super) fn new(rows: Vec<Equation>, basis: Vec<usize>) -> Self {
        let mut tableau = Self { rows, basis };
        for row in 0..tableau.rows.len() {
            tableau.pivot(row, tableau.basis[row]);
        }
        tableau
    }

    /// The value of a variable.
    pub(super) fn value(&self, variable: usize) -> f64 {
        let row = self.basis.iter().position(|basic| *basic == variable);
        row.map_or(0.0, |row| self.rows[row].right_side.max(0.0))
    }

    /// Sets the value of the basic variable `slack`, which moves the bound that it belongs to.
    pub(super) fn set_slack(&mut self, slack: usize, value: f64) {
        if let Some(row) = self.basis.iter().position(|basic| *basic == slack) {
            self.rows[row].right_side = value;
        }
    }

    /// Changes the basis until `objective` is minimal.
    pub(super) fn minimise(&mut self, objective: &[f64]) {
        for _ in 0..MAX_PIVOTS {
            let Some(entering) = self.entering(objective) else {
                return;
            };
            let Some(leaving) = self.leaving(entering) else {
                return;
            };
            self.pivot(leaving, entering);
            self.basis[leaving] = entering;
        }
    }

    /// The first variable that lowers the objective when it grows.
    fn entering(&self, objective: &[f64]) -> Option<usize> {
        let scale = objective
            .iter()
            .fold(0.0_f64, |largest, cost| largest.max(cost.abs()));
        (0..objective.len()).find(|column| {
            let basic = self.basis.iter().zip(&self.rows);
            let saved: f64 = basic
                .map(|(basic, row)| objective[*basic] * row.coefficients[*column])
                .sum();
            !self.basis.contains(column) && objective[*column] - saved < -EPSILON * scale
        })
    }

    /// The row whose basic variable reaches 0 first as `entering` grows; among equals, the one with the first variable.
    fn leaving(&self, entering: usize) -> Option<usize> {
        let ratios = self.rows.iter().enumerate().filter_map(|(index, row)| {
            let coefficient = row.coefficients[entering];
            (coefficient > MIN_PIVOT).then(|| (row.right_side.max(0.0) / coefficient, index))
        });
        ratios
            .min_by(|(a, row), (b, other)| a.total_cmp(b).then(self.basis[*row].cmp(&self.basis[*other])))
            .map(|(_, row)| row)
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let factor = self.rows[row].coefficients[column];
        if factor == 0.0 {
            return;
        }
        let pivot_row = &mut self.rows[row];
        for coefficient in &mut pivot_row.coefficients {
            *coefficient /= factor;
        }
        pivot_row.right_side /= factor;
        let pivot_row = pivot_row.clone();
        for (index, other) in self.rows.iter_mut().enumerate() {
            let factor = other.coefficients[column];
            if index == row || factor == 0.0 {
                continue;
            }
            for (coefficient, pivot) in other.coefficients.iter_mut().zip(&pivot_row.coefficients) {
                *coefficient -= factor * pivot;
            }
            other.right_side -= factor * pivot_row.right_side;
        }
    }
}
