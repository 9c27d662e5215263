//! Answers that refuse, that fail for a while, and that should not be believed.

use super::World;
use super::server::Answer;
use serde_json::json;

const PULL: [&str; 2] = ["pull", "hf:me/M-GGUF"];

/// The error of a pull whose questions to the hub get this answer.
#[track_caller]
fn refused(part: &'static str, answer: Answer, variables: &[(&str, &str)]) -> (World, String) {
    let world = World::one();
    world.server.plan(move |request, _| request.path.contains(part).then(|| answer.clone()));
    let run = world.with(&PULL, variables);
    assert_eq!(run.code, 1, "{}", run.err);
    let line = run.err.lines().last().unwrap_or_default().to_string();
    (world, line)
}

#[test]
fn a_gated_repository_names_the_page_of_its_licence() {
    let gated = |status| Answer::new(status, "").with("X-Error-Code", "GatedRepo");
    let (world, line) = refused("/resolve/", gated(401), &[]);
    let page = format!("accept it at {}/me/M-GGUF, then set HF_TOKEN", world.server.address);
    assert!(line.contains(&page), "{line}");
    let (_, line) = refused("/resolve/", gated(403), &[("HF_TOKEN", "hf_x")]);
    assert!(line.contains("with the token of this account"), "{line}");
    let (_, line) = refused("/api/", Answer::new(401, ""), &[("HF_TOKEN", "hf_x")]);
    assert!(line.contains("the hub refuses the token; see HF_TOKEN"), "{line}");
    let (_, line) = refused("/api/", Answer::new(401, "").with("X-Error-Code", "RepoNotFound"), &[]);
    assert!(line.contains("has no repository me/M-GGUF") && line.contains("for a private one set HF_TOKEN"), "{line}");
}

#[test]
fn a_repository_that_is_not_there_has_near_names_and_one_without_gguf_a_counterpart() {
    let world = World::one();
    let line = world.run(&["pull", "hf:Qwen/Qwen3-8B-GGFU:Q4_K_M"]).failed(1);
    assert!(
        line.contains("has no repository Qwen/Qwen3-8B-GGFU; near names are hf:Qwen/Qwen3-8B-GGUF:Q4_K_M"),
        "{line}"
    );
    world.server.plan(|_, _| Some(Answer::new(200, json!({ "sha": "1".repeat(40), "siblings": [] }).to_string())));
    let line = world.run(&["pull", "hf:Qwen/Qwen3-8B"]).failed(1);
    assert!(line.contains("no GGUF files; hf:Qwen/Qwen3-8B-GGUF:Q4_K_M (qwen3-8b) has one"), "{line}");
}

#[test]
fn a_failing_server_is_tried_again_and_not_for_ever() {
    let world = World::one();
    world.server.plan(|request, before| match (request.path.contains("/api/"), before) {
        (true, 0) => Some(Answer::new(500, "")),
        (true, 1) => Some(Answer::new(429, "").with("Retry-After", "0")),
        (false, 0) => Some(Answer::new(503, "")),
        _ => None,
    });
    world.good(&PULL);
    assert_eq!(world.server.asked("/api/").len(), 3);
    let (world, line) = refused("/api/", Answer::new(500, ""), &[]);
    assert!(line.contains("the hub answers 500") && line.contains("3 tries failed"), "{line}");
    assert_eq!(world.server.asked("/api/").len(), 3);
    let (world, line) = refused("/api/", Answer::new(429, "").with("Retry-After", "9999"), &[]);
    assert!(line.contains("asks to wait for 9999 s"), "{line}");
    assert_eq!(world.server.asked("/api/").len(), 1);
}

#[test]
fn a_hub_that_cannot_be_reached_is_told_with_the_way_out() {
    let world = World::one();
    let line = world.with(&PULL, &[("HF_ENDPOINT", "http://127.0.0.1:9")]).failed(1);
    assert!(line.contains("cannot reach 127.0.0.1:9: ") && line.contains("3 tries failed"), "{line}");
    let line = world.with(&PULL, &[("HF_ENDPOINT", "ftp://x")]).failed(1);
    assert!(line.contains("HF_ENDPOINT") && line.contains("must begin with https://"), "{line}");
    let line = world.with(&PULL, &[("HF_HUB_OFFLINE", "1")]).failed(1);
    assert!(line.contains("HF_HUB_OFFLINE forbids to fetch it"), "{line}");
    assert!(world.server.asked("").is_empty());
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    for is_file in [false, true] {
        let world = World::one();
        let run = if is_file {
            std::fs::create_dir_all(world.home.path().join("hf")).unwrap();
            std::fs::write(world.home.path().join("hf/token"), "hf_secret\n").unwrap();
            world.run(&PULL)
        } else {
            world.with(&PULL, &[("HF_TOKEN", "hf_secret")])
        };
        assert_eq!(run.code, 0, "{}", run.err);
        let tokens = |part: &str| -> Vec<_> { world.server.asked(part).into_iter().map(|asked| asked.token).collect() };
        let secret = Some("Bearer hf_secret".to_string());
        assert_eq!((tokens("/api/"), tokens("/resolve/")), (vec![secret.clone()], vec![secret]));
        assert_eq!(tokens("/content/"), [None], "another port is another host");
        assert!(!run.err.contains("secret"));
    }
    let world = World::one();
    assert!(world.with(&PULL, &[("HF_TOKEN", "a\nb")]).failed(1).contains("no token has"));
}

#[test]
fn answers_that_lead_elsewhere_or_never_end_are_refused() {
    for path in ["../../evil.gguf", "/evil.gguf", "a/../../evil.gguf"] {
        let file = json!({ "rfilename": path, "lfs": { "sha256": "a".repeat(64), "size": 1 } });
        let listing = json!({ "sha": "1".repeat(40), "siblings": [file] });
        let (world, line) = refused("/api/", Answer::new(200, listing.to_string()), &[]);
        assert!(line.contains("no safe file name"), "{line}");
        assert!(!world.home.path().join("hf/evil.gguf").exists() && !world.repo("").exists());
    }
    let mut endless = Answer::new(200, vec![b' '; 17 << 20]);
    endless.headers.clear();
    assert!(refused("/api/", endless, &[]).1.contains("longer than 16 MiB"));
    assert!(refused("/api/", Answer::new(200, "[1,"), &[]).1.contains("is not understood"));
    let place = |to: &str| Answer::new(302, "").with("Location", to);
    assert!(refused("/resolve/", place("file:///etc/passwd"), &[]).1.contains("not followed"));
    let (world, line) = refused("/resolve/", place("/me/M-GGUF/resolve/again"), &[]);
    assert!(line.contains("redirects more than 5 times"), "{line}");
    assert_eq!(world.server.asked("/resolve/").len(), 6);
}
