"""Classify unlisted words by their ending: `-itis`, `-ectomy`, `-pril`.

Medical words are built from parts, so a short table of endings reads most of the words that every
list misses. A stop list excludes ordinary words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pipeline.providers.local.names.word_lists import words
from pipeline.providers.schemas import Category

_ENDINGS: tuple[tuple[Category, int, re.Pattern[str]], ...] = (
    (
        "procedure",
        7,
        re.compile(
            r"(?:ectomy|ectomies|otomy|otomies|ostomy|plasty|plasties|scopy|scopies|pexy"
            r"|centesis|desis|rrhaphy"
            r"|lysis(?<!dialysis)(?<!nalysis)(?<!paralysis)(?<!hemolysis)(?<!molysis)(?<!omyolysis)"
            r"|tripsy|graphy)$"
        ),
    ),
    (
        "symptom",
        7,
        re.compile(
            r"(?:algia|algias|dynia|pnea|pnoea|rrhea|rrhoea|phagia|phasia|uria|phonia|opsia"
            r"|esthesia|esthesias|orexia|ptysis|emesis|kinesia|praxia|crackles?|megaly)$"
        ),
    ),
    (
        "condition",
        6,
        re.compile(
            r"(?:itis|itides|osis|oses|oma|omas|omata|emia|emias|aemia|pathy|pathies|plegia"
            r"|paresis|penia|rrhagia|ectasis|ectasia|malacia|sclerosis|trophy|plasia|cytosis"
            r"|philia|lithiasis|thorax|cele|stenosis|edema|ptosis|ismus|phobia|mania|iasis"
            r"|sepsis|toxicity|spasm|blastoma|carcinoma|sarcoma|aneurysm|fibrosis|necrosis"
            r"|embolism|thrombosis|cardia|rrhythmia|plakia|chezia|ruria)$"
        ),
    ),
    (
        "medication",
        7,
        re.compile(
            r"(?:[a-z]{3}(?:umab|ximab|zumab|limab)|tinib|ciclib|rafenib|parib|azole|prazole"
            r"|pril|sartan|olol|statin|cillin|mycin|micin|floxacin|oxacin|cycline|tidine|dipine"
            r"|gliptin|gliflozin|triptan|setron|gepant|xaban|parin|glutide|oxetine|azepam"
            r"|azolam|caine|barbital|navir|tegravir|buvir|asvir|ciclovir|cyclovir|sone|solone"
            r"|lukast|terol|tropium|profen|coxib|thiazide|semide|fibrate|glitazone|dronate"
            r"|relin|rubicin|taxel|platin|trexate|dazole|conazole|fungin|penem|cef[a-z]+"
            r"|mustine|bactam|curium|curonium|flurane|peridone|piprazole|tadine|trexed)$"
        ),
    ),
)

SHORTEST_ENDING = min(shortest for _, shortest, _ in _ENDINGS)
"""Letters of the shortest word that its ending can classify."""


@lru_cache(maxsize=20_000)
def category_of(word: str) -> Category | None:
    """Return the category that the ending of `word` indicates; None for other words."""
    low = word.lower()
    if low in words("stop_words.txt") or not low.isalpha():
        return None
    for category, shortest, ending in _ENDINGS:
        if len(low) >= shortest and ending.search(low):
            return category
    return None
