//! Derivative of a look-up in an embedding table by the table.

/// `g[v] += sum of dy[t] over the rows t with ids[t] = v`: the derivative of
/// [`embed`](crate::embed()) by the table, added to `g`. The sum is rounded before it is added.
///
/// `dy [T, D]` with D = `dim`, `ids [T]`, each below V; `g [V, D]`.
pub fn embed_backward(dy: &[f32], ids: &[u32], dim: usize, g: &mut [f32]) {
    let vocabulary = crate::check::rows("embed_backward: g", g.len(), dim);
    crate::check::len("embed_backward: dy", dy.len(), ids.len() * dim);
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&t| ids[t]);
    for rows in order.chunk_by(|&a, &b| ids[a] == ids[b]) {
        let id = ids[rows[0]] as usize;
        assert!(id < vocabulary, "embed_backward: id {id} of a table of {vocabulary} rows");
        for (d, g) in g[id * dim..][..dim].iter_mut().enumerate() {
            *g += rows.iter().map(|&t| f64::from(dy[t * dim + d])).sum::<f64>() as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::embed_backward;
    use crate::Rows;
    use crate::differences::{holds, numbers};
    use crate::rows::tests::f32_bytes;
    use gguf::GgmlType;

    #[test]
    fn it_is_the_derivative_of_the_look_up_added_to_what_was_there() {
        let (vocabulary, dim, ids) = (5, 3, [4, 0, 4, 2, 0, 4]);
        let (table, dy) = (numbers(vocabulary * dim, 1), numbers(ids.len() * dim, 2));
        let mut g = vec![0.5; vocabulary * dim];
        embed_backward(&dy, &ids, dim, &mut g);
        g.iter_mut().for_each(|g| *g -= 0.5);
        let look_up = |table: &[f32]| {
            let mut y = vec![0.0; ids.len() * dim];
            crate::embed(&Rows::new(GgmlType::F32, dim, &f32_bytes(table)), &ids, &mut y);
            y
        };
        holds(look_up, &table, &dy, &g);
        assert_eq!(g[dim..2 * dim], [0.0; 3], "an id that no row has");
    }
}
