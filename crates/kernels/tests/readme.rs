//! README.md lists every operation.

#[test]
fn the_table_names_every_operation() {
    let page = include_str!("../README.md");
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for (stem, _) in kernels::testing::cases() {
        let name = format!("`{stem}`");
        let listed =
            table.iter().filter(|line| line.split('|').nth(1).is_some_and(|cell| cell.contains(&name))).count();
        assert_eq!(listed, 1, "{name} in the table of operations");
    }
}
