//! The commands of a chat.

use super::Terminal;
use crate::run;
use crate::tiny::{self, Model};
use crate::tools::saying;

/// A model that answers "xx" to everything, and whose prompt is the first letter of each role with
/// the content: one token per byte.
fn echo() -> Model {
    saying("xx", "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}")
}

fn start(model: &Model, more: &[&str]) -> Terminal {
    let words = ["run", model.path(), "--device", "cpu", "-n", "1", "--stats", "--temp", "0"];
    Terminal::start(&[&words, more].concat())
}

#[test]
fn unknown_commands_are_refused_with_the_nearest_and_paths_are_messages() {
    let model = echo();
    let mut chat = start(&model, &[]);
    chat.says("/help", "/edit");
    chat.expect("A message that begins with a slash is sent with a space in front of it.");
    chat.says("/help set", "repeat-penalty X");
    chat.says("/resett", "no command /resett; did you mean /reset?");
    chat.says("/sett temp 0", "no command /sett; did you mean /set?");
    chat.says("/weave a scarf", "no command /weave; /help lists the commands");
    chat.says("/reset now", "/reset takes no words behind it");
    chat.says("/image cat.png", "pictures are not supported yet; nothing was sent");
    chat.says("/tool", "say /tool TEXT");
    chat.says("/usr/bin/x is what?", "prompt 20 tokens");
    chat.says("/reset", "forgotten");
    chat.says(" /help", "prompt 6 tokens");
    chat.leave();
}

#[test]
fn values_are_set_by_the_names_and_checks_of_flags_and_by_ollamas_names() {
    let model = echo();
    let mut chat = start(&model, &[]);
    chat.says("/set top-p 2", "weft: top-p 2: must be above 0 and at most 1\r\n");
    chat.says("/set temp warm", "temp warm: not a number");
    chat.says("/set parameter temperature 0.5", "temp 0.5");
    chat.says("/set temp", "temp is 0.5; /set temp T changes it");
    chat.says("/set top_k 7", "top-k 7");
    chat.says("/set seed 11", "seed 11");
    chat.says("/set sytem Be brief.", "there is no setting sytem; did you mean system?");
    chat.says("/set think", "the chat template of this model has no switch for thinking");
    chat.says("/set quiet now", "/set quiet takes no value");
    chat.says("/set", "[now: 0.5]");
    chat.expect("[now: 7]");
    chat.says("hi", "seed 11");
    chat.says("/set quiet", "\nquiet\r\n");
    chat.says("/set temp 0", "temp 0\r\n");
    chat.says("/set max-tokens 3", "max-tokens 3\r\n");
    chat.says("hi", "xxxxxx\r\n");
    chat.says("/show parameters", "max-tokens");
    chat.leave();
}

#[test]
fn thinking_is_switched_where_the_template_knows_it() {
    let model = saying("xx", crate::tools::TEMPLATE);
    let mut chat = start(&model, &[]);
    chat.says("hi", "prompt 2 tokens");
    chat.says("/set nothink", "\nnothink\r\n");
    chat.says("hi", "prompt 15 tokens");
    chat.says("/set think", "\nthink\r\n");
    chat.says("/set", "[now: on]");
    chat.leave();
}

#[test]
fn another_system_message_takes_the_place_of_the_first_and_the_conversation_stays() {
    let model = echo();
    let mut chat = start(&model, &["--system", "old"]);
    // The prompts are "soldu12", then "snewu12axxu34" and "u12axxu34axxu56" with "xx" as one token.
    chat.says("12", "prompt 7 tokens");
    chat.says("/set system new", "system \"new\"");
    chat.says("34", "context 13 of ");
    chat.says("/show system", "new");
    chat.says("/set system \"\"", "system none");
    chat.says("56", "context 14 of ");
    chat.says("/set system \"\"\"a\rb\"\"\"", "system \"a\r\nb\"");
    chat.leave();
}

#[test]
fn a_larger_context_keeps_the_conversation_and_one_that_does_not_fit_is_refused() {
    let model = echo();
    let mut chat = start(&model, &["--ctx", "12"]);
    chat.says("12", "context 4 of 12");
    chat.says("123456789", "/set ctx N enlarges it");
    chat.says("/set ctx 0", "ctx 0: ");
    chat.says(
        "/set ctx 3",
        "a context of 3 tokens is too short for the conversation of 4; the context of 12 tokens stays",
    );
    chat.says(
        "/set ctx 2000000",
        "2000000 is not between 1 and 1048576, the limit of the model; the context of 12 tokens stays",
    );
    chat.says("/set parameter num_ctx 64", "ctx 64");
    // The message that found no room is asked again, behind the first turn.
    chat.says("/retry", "prompt 15 tokens");
    chat.expect("context 16 of 64");
    chat.leave();
}

#[test]
fn an_answer_is_asked_for_again_with_another_seed_unless_one_was_given() {
    let model = Model::new(&tiny::builder(0.5));
    let words = ["run", model.path(), "--device", "cpu", "-n", "9", "--stats", "--temp", "2"];
    let seeds = |more: &[&str], set: &str| {
        let mut chat = Terminal::start(&[&words, more].concat());
        if !set.is_empty() {
            chat.says(set, "seed ");
        }
        let seeds = ["ab", "/retry", "/retry"].map(|typed| {
            chat.says(typed, ", seed ");
            chat.until("\r\n")
        });
        chat.leave();
        seeds
    };
    let [first, second, third] = seeds(&[], "");
    assert!(first != second && second != third, "{first} {second} {third}");
    assert_eq!(seeds(&["--seed", "5"], ""), ["5"; 3]);
    assert_eq!(seeds(&[], "/set seed 6"), ["6"; 3]);
    let [first, second, _] = seeds(&["--seed", "5"], "/set seed -1");
    assert!(first != second && first != "5", "{first} {second}");
}

#[test]
fn the_last_message_is_edited_and_its_turn_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.weft").to_str().unwrap().to_string();
    let mut chat = Terminal::start(&["run", "--device", "cpu"]);
    chat.says("/edit", "there is no message yet to edit");
    chat.says("/retry", "there is no answer yet to ask for again");
    chat.says("Where does Wren live?", "Wren lives in Windle.");
    chat.says("What is 3 + 4?", "3 + 4 = 7.");
    chat.says("/edit", "What is 3 + 4?");
    // Two backspaces take "4?" away.
    chat.keys("\u{7f}\u{7f}");
    std::thread::sleep(std::time::Duration::from_millis(100));
    chat.keys("5?\r");
    chat.expect("3 + 5 = 8.");
    chat.says("/retry", "3 + 5 = 8.");
    chat.says(&format!("/save {file}"), "the conversation is saved");
    chat.leave();
    let saved = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    assert_eq!((saved.matches("3 + 5 = 8.").count(), saved.matches("3 + 4").count()), (1, 0));
    assert_eq!(saved.matches("Wren lives in Windle.").count(), 1);
}

#[test]
fn a_conversation_is_saved_and_continued_by_name_with_its_settings() {
    let state = tempfile::tempdir().unwrap();
    let home = [("XDG_STATE_HOME", state.path().to_str().unwrap())];
    let mut chat = Terminal::start_with(&["run", "--device", "cpu"], &home);
    chat.says("/load", "no saved conversations; /save NAME saves one");
    chat.says("/save talk", "there is no conversation yet to save");
    chat.says("Where does Wren live?", "Wren lives in Windle.");
    chat.says("/set temp 0.125", "temp 0.125");
    chat.says("/set max-tokens 40", "max-tokens 40");
    chat.says("/save ../talk/x", "cannot");
    chat.says("/save .hidden", "is not a name for a conversation");
    chat.says("/save my talk", "the conversation is saved; /load my talk continues it");
    chat.leave();
    let file = state.path().join("weft/sessions/my talk.weft");
    let file = file.to_str().unwrap();
    let mut chat = Terminal::start_with(&["run", "--device", "cpu", "--stats"], &home);
    chat.says("/load", "my talk\r\n");
    chat.says("/load my tale", "no conversation my tale: there is no file ");
    chat.expect("did you mean my talk?");
    chat.says("/load my talk", "the conversation goes on: ");
    chat.says("/set temp", "temp is 0.125");
    chat.says("/set max-tokens", "max-tokens is 40");
    chat.says("/edit", "Where does Wren live?");
    chat.keys("\r");
    chat.expect("Wren lives in Windle.");
    chat.leave();
    let model = Model::new(&tiny::builder(0.5));
    let mut chat = Terminal::start_with(&["run", model.path(), "--device", "cpu"], &home);
    chat.says("/load my talk", "the session was saved with another model file: its digest differs");
    chat.leave();
    let words = ["run", "--device", "cpu", "--json", "-p", "What is 3 + 4?", "--load-session", file];
    let json = run(&words).json();
    assert!(json["prompt_tokens"].as_u64().unwrap() > 30, "{json}");
}

#[test]
fn the_model_and_what_holds_for_it_are_shown() {
    let file = tiny::builder(0.5).set("general.license", "apache-2.0").set("general.name", "Weaver");
    let model = Model::new(&file);
    let mut chat = Terminal::start(&["run", model.path(), "--device", "cpu", "--temp", "0.5", "--system", "Weave."]);
    chat.says("/show", "Weaver (");
    chat.expect("cpu");
    chat.expect("0 of 8192 tokens");
    chat.expect("temp 0.5, top-k 40");
    chat.expect("Weave.");
    chat.expect("no adapters");
    chat.says("/show info", "qwen3");
    chat.expect("1048576 tokens");
    chat.says("/show license", "apache-2.0");
    chat.says("/show system", "Weave.");
    chat.says("/show template", "{%");
    chat.says("/show licence", "/show has no topic licence; did you mean license?");
    chat.leave();
}
