//! Tests of the choice from times, and of the time limit of a search.

use super::*;

/// Tries from (value, seconds with it, seconds without it).
fn tries(of: &[(u32, f64, f64)]) -> Vec<Try> {
    of.iter().map(|&(at, with_s, without_s)| Try { at, with_s, without_s, noise: 0.0 }).collect()
}

#[test]
fn the_usual_number_stays_where_the_kernels_cross_between_the_points_around_it() {
    assert_eq!(last_served(&tries(&[(4, 1.0, 2.0), (8, 1.0, 1.1), (16, 1.2, 1.0)]), 8), 8);
    assert_eq!(last_served(&tries(&[(4, 1.0, 2.0), (8, 1.0, 1.1), (16, 1.2, 1.0)]), 12), 12);
}

#[test]
fn a_kernel_that_loses_before_the_usual_number_serves_up_to_the_last_point_it_won() {
    assert_eq!(last_served(&tries(&[(2, 1.0, 2.0), (4, 1.5, 1.0)]), 8), 2);
    assert_eq!(last_served(&tries(&[(1, 1.5, 1.0)]), 8), 0, "it serves nowhere");
    assert_eq!(last_served(&tries(&[(64, 1.5, 1.0)]), 512), 0, "it serves nowhere");
}

#[test]
fn a_kernel_that_wins_beyond_the_usual_number_serves_up_to_the_last_point_it_won() {
    assert_eq!(last_served(&tries(&[(8, 1.0, 2.0), (16, 1.0, 1.5), (32, 1.2, 1.0)]), 8), 16);
    assert_eq!(last_served(&tries(&[(8, 1.0, 2.0), (16, 1.0, 1.5)]), 8), 16, "the time was up");
}

#[test]
fn what_is_within_the_margin_or_was_not_tried_is_left_as_usual() {
    assert_eq!(last_served(&tries(&[(4, 1.02, 1.0), (8, 1.02, 1.0), (16, 1.0, 1.02)]), 8), 8);
    assert_eq!(last_served(&[], 8), 8);
    assert_eq!(last_served(&tries(&[(4, 1.0, 2.0)]), 8), 8);
    assert_eq!(fastest(&[], 512, MARGIN), 512);
    assert_eq!(fastest(&tries(&[(128, 0.98, 1.0), (1024, 1.5, 1.0)]), 512, MARGIN), 512);
}

#[test]
fn a_gain_counts_only_beyond_what_two_halves_of_its_runs_differ() {
    let noisy = |noise| [Try { at: 16, with_s: 0.8, without_s: 1.0, noise }];
    assert_eq!((last_served(&noisy(0.1), 8), last_served(&noisy(0.18), 8)), (16, 8));
    assert_eq!((fastest(&noisy(0.1), 8, 0.05), fastest(&noisy(0.1), 8, 0.15)), (16, 8));
}

#[test]
fn the_fastest_of_several_is_chosen() {
    assert_eq!(fastest(&tries(&[(128, 0.9, 1.0), (256, 0.5, 1.0), (1024, 0.7, 1.0)]), 512, MARGIN), 256);
}

#[test]
fn the_points_of_a_threshold_rise_and_a_device_that_has_all_kernels_has_most_of_them_to_choose_from() {
    let device = crate::device::tests::device();
    let table = Table::usual(Class::Discrete, true);
    let (max_workgroup_bytes, max_storage_buffers) = (48 << 10, 16);
    let caps = Caps {
        cooperative: true,
        max_workgroup: 1024,
        max_workgroup_bytes,
        max_storage_buffers,
        table,
        ..Caps::WEBGPU
    };
    let device = device.with_caps(caps);
    let [long, longest] = [256, 512].map(|head_dim| Shapes { head_dim, ..Shapes::LARGE });
    // Only a product with short rows joins the parts of a window.
    let windowed = Shapes { heads: 8, kv_heads: 1, head_dim: 256, ..Shapes::SMALL };
    let all = [Shapes::LARGE, long, longest].map(|shapes| (shapes, false)).into_iter().chain([(windowed, true)]);
    for ((shapes, has_window), (name, how)) in all.flat_map(|shapes| SEARCHES.map(|search| (shapes, search))) {
        if has_window != (name == "window_keys") {
            continue;
        }
        let search = Search { threshold: Threshold::named(name), how, shapes };
        let (How::UpTo(points, _) | How::Best(points, ..)) = how;
        let found = search.points(&device).expect("plans");
        assert!(2 * found.len() >= points.len(), "{name}: {found:?}");
        assert!(
            points.windows(2).all(|pair| pair[0] < pair[1])
                && points.iter().all(|at| search.threshold.within.contains(at)),
            "{name}"
        );
    }
}

#[test]
fn no_time_and_no_leave_keep_the_table_there_is_and_tell_so() {
    let device = crate::device::tests::device();
    let device = device.with_table(Table { q8_rows: 3, tile64_rows: 40, ..device.caps().table });
    let was = device.caps().table;
    let none = tune(&device, Some(Shapes::TINY), Duration::ZERO, &mut |_, _, _| true).expect("nothing to fail");
    assert_eq!((none.table, none.whole()), (was, false));
    let mut asked = 0;
    let stopped = tune(&device, Some(Shapes::TINY), Duration::from_secs(60), &mut |_, _, _| {
        asked += 1;
        false
    });
    let stopped = stopped.expect("nothing to fail");
    let choices = stopped.trials.iter().filter(|trial| !trial.whole).count();
    assert!(stopped.table == was && asked == choices && choices > 0, "asked {asked} times for {choices}");
}

#[test]
fn a_search_ends_soon_after_its_time_and_what_it_chose_is_within_bounds() {
    let device = crate::device::tests::device();
    let (began, budget) = (Instant::now(), Duration::from_secs(2));
    let tuned = tune(&device, None, budget, &mut |_, _, _| true).expect("a device that works");
    // One comparison may begin just before the deadline. Its kernels take seconds to compile on a
    // software driver.
    assert!(began.elapsed() < budget + Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(tuned.trials.len(), SEARCHES.len());
    for Trial { threshold, chosen, tries, .. } in &tuned.trials {
        assert!(
            threshold.within.contains(chosen) && tries.iter().all(|tried| tried.with_s > 0.0 && tried.without_s > 0.0),
            "{}",
            threshold.name
        );
    }
}
