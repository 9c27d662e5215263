// The number of rows to sum over: the rows of the step (counted = 0) or the rows that get logits
// (counted = 1), from `first` on. Rows past these may hold any bits.
// Needs: step_rows, params.counted, params.rows, params.first. Gives: rows_that_count.
fn rows_that_count() -> u32 {
    let all = step_rows[params.counted];
    return min(params.rows, all - min(all, params.first));
}
