//! Sums over the rows of the step: derivatives by rows that repeat, such as biases.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, State, StateKind, Tensor, counted};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};

kernel! {
    COLUMN_SUM: "column_sum",
    wgsl: ["training/column_sum.wgsl", "shared/grid.wgsl", "shared/step_rows.wgsl"],
    params: Params { dim: u32, columns: u32, each: u32, rows: u32, counted: u32, first: u32, has_b: u32, has_s: u32 },
    bindings: Bind { a: Read, b: Read, s: Read, step_rows: Read, g: State },
    cpu: cpu_ref::column_sum,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 1024 },
}

/// Most columns per workgroup.
const COLUMNS: u32 = 64;

/// g += the sum of the rows of a, or of a b.
#[derive(Clone, Debug)]
pub struct ColumnSum {
    pub a: Tensor,
    pub b: Option<Tensor>,
    pub step_rows: Tensor,
    /// Elements of `g`.
    pub dim: u32,
    pub g: State,
}

parameters! { ColumnSum }

/// g\[c\] += sum_r a[r, c] b[r, c] over the rows of the step, with b = 1 if it is absent: the
/// derivative of a bias from the derivative `a` by the sum, or of a row factor from the derivative
/// by the product and its other operand. `a` and `b` [T, D], f32; `g` holds as many plain words of
/// f32 as the row has elements. A shorter row repeats within D.
pub fn column_sum(rec: &mut Recorder<impl From<ColumnSum>>, a: Tensor, b: Option<Tensor>, g: State) {
    let StateKind::Words(dim) = rec.kind(g) else { panic!("column_sum in {:?}", rec.kind(g)) };
    assert!(dim > 0 && a.shape.width().is_multiple_of(dim), "column_sum: rows of {} in {dim} words", a.shape.width());
    assert!(
        b.is_none_or(|b| (b.shape.rows, b.shape.width()) == (a.shape.rows, a.shape.width())),
        "column_sum of unequal shapes"
    );
    let step_rows = rec.input(Input::Rows);
    rec.push(ColumnSum { a, b, step_rows, dim, g });
}

/// The kernel call for rows `a`, operands `b` and `s` or none, and `dim` sums.
pub(super) fn dispatch(
    a: Tensor,
    b: Option<Tensor>,
    s: Option<Tensor>,
    step_rows: Tensor,
    dim: u32,
    g: State,
) -> Dispatch {
    let (counted, first) = counted(a.shape);
    let columns = dim.next_power_of_two().min(COLUMNS);
    let params = Params {
        dim,
        columns,
        each: a.shape.width() / dim,
        rows: a.shape.rows,
        counted,
        first,
        has_b: u32::from(b.is_some()),
        has_s: u32::from(s.is_some()),
    };
    let [b, s] = [b, s].map(|t| t.map_or(Arg::None, Arg::from));
    let grid = Grid::PerRow { lead: fixed(dim.div_ceil(columns), 1), per_row: 1 };
    Bind { a: a.into(), b, s, step_rows: step_rows.into(), g: g.into() }.dispatch(params, grid)
}

impl Operation for ColumnSum {
    fn io(&self) -> Io {
        Io { reads: [self.a, self.step_rows].into_iter().chain(self.b).collect(), writes: vec![] }
    }
}

impl Lowering for ColumnSum {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        vec![dispatch(self.a, self.b, None, self.step_rows, self.dim, self.g)]
    }
}

impl Reference for ColumnSum {
    fn reference(&self, host: &mut Host<'_>) {
        let mut g = host.state_f32(self.g);
        cpu_ref::column_sum(host.f32(self.a), self.b.map(|b| host.f32(b)), &mut g);
        host.put_state(self.g, &g);
    }
}
