//! How large the library is.

use crate::Result;
use crate::report::Line;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let bytes = std::fs::metadata(fence_tests::library())?.len();
    Ok(vec![Line::at_most(
        "size of the library",
        bytes as f64 / 1024.0 / 1024.0,
        1.0,
        "MiB",
    )])
}
