//! `weft tokenize`.

use crate::tiny::{self, Model};
use crate::{piped, run};

#[test]
fn text_goes_to_ids_and_back() {
    let text = "Where does Wren live? caf\u{e9} \u{1f9f5}";
    let json = run(&["tokenize", "--json", text]).json();
    let ids: Vec<String> = json["ids"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(json["count"], ids.len());
    assert_eq!(run(&["tokenize", "--decode", &ids.join(",")]).good(), format!("{text}\n"));
    assert_eq!(piped(&["tokenize", "--decode", "-"], &json["ids"].to_string()).good(), format!("{text}\n"));
}

#[test]
fn a_model_of_ones_own_may_stand_before_the_text_and_before_decode() {
    let model = Model::new(&tiny::builder(0.1));
    assert_eq!(run(&["tokenize", model.path(), "ab c"]).good(), "    256  \"ab\"\n     32  \" \"\n     99  \"c\"\n");
    let ids = serde_json::json!([256, 32, 99]);
    for words in [["--json", model.path(), "ab c"], [model.path(), "--json", "ab c"], [model.path(), "ab c", "--json"]]
    {
        assert_eq!(run(&[&["tokenize"], &words[..]].concat()).json()["ids"], ids, "{words:?}");
    }
    assert_eq!(run(&["tokenize", model.path(), "--plain", "--", "-ab"]).good().lines().count(), 2);
    assert_eq!(run(&["tokenize", model.path(), "--decode", "256,32,99"]).good(), "ab c\n");
    assert_eq!(run(&["tokenize", model.path(), "ab", "c"]).code, 2);
    assert!(run(&["tokenize", model.path(), "ab", "--decode", "256"]).failed(2).contains("leave the text out"));
    assert!(run(&["tokenize", model.path(), "--decode", "257"]).failed(1).contains("257"));
}

#[test]
fn names_of_control_tokens_are_tokens_unless_plain() {
    let count = |words: &[&str]| {
        run(&[&["tokenize", "--json", "<|im_end|>"], words].concat()).json()["count"].as_u64().unwrap()
    };
    assert_eq!(count(&[]), 1);
    assert!(count(&["--plain"]) > 1);
}

#[test]
fn stdin_counts_to_the_last_byte() {
    let model = Model::new(&tiny::builder(0.1));
    assert_eq!(piped(&["tokenize", model.path(), "-", "--json"], "ab\n").json()["ids"], serde_json::json!([256, 10]));
}
