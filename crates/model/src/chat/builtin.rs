//! Templates for files that bring none.

use crate::tokenizer::Tokenizer;

/// A message's text, or that of its parts, through a filter.
macro_rules! content {
    ($filter:literal) => {
        concat!(
            "{% if message.content is string %}{{ message.content",
            $filter,
            " }}{% else %}{% for part in message.content or [] %}{{ part.text",
            $filter,
            " }}{% endfor %}{% endif %}",
        )
    };
}

/// `<|im_start|>role`, the text, `<|im_end|>`: Qwen and many others.
const CHATML: &str = concat!(
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}",
    content!(""),
    "{{ '<|im_end|>\\n' }}{% endfor %}",
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
);

/// Gemma 1 to 3 know the roles user and model; what the system says opens the first turn.
const GEMMA: &str = concat!(
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for message in messages %}",
    "{% if message.role == 'system' %}{% set ns.system %}",
    content!(" | trim"),
    "{{ '\\n\\n' }}{% endset %}{% else %}",
    "{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' + ns.system }}",
    "{% set ns.system = '' %}",
    content!(" | trim"),
    "{{ '<end_of_turn>\\n' }}{% endif %}{% endfor %}",
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
);

/// Gemma 4 has system turns, which say whether to think.
const GEMMA4: &str = concat!(
    "{{ bos_token }}{% set think = '<|think|>\\n' if enable_thinking else '' %}",
    "{% if think and (not messages or messages[0].role != 'system') %}{{ '<|turn>system\\n' + think + '<turn|>\\n' }}{% endif %}",
    "{% for message in messages %}",
    "{{ '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}",
    "{% if loop.first and message.role == 'system' %}{{ think }}{% endif %}",
    content!(" | trim"),
    "{{ '<turn|>\\n' }}{% endfor %}",
    "{% if add_generation_prompt %}{{ '<|turn>model\\n' }}{% endif %}",
);

/// The template whose turns `tokenizer` has tokens for; ChatML where it has none.
pub(super) fn for_vocabulary(tokenizer: &Tokenizer) -> &'static str {
    if tokenizer.token_to_id("<|turn>").is_some() {
        GEMMA4
    } else if tokenizer.token_to_id("<start_of_turn>").is_some() {
        GEMMA
    } else {
        CHATML
    }
}
