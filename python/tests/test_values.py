import random
import unittest
from decimal import Decimal

from vitrina_tasks.arrays import format_array, parse_array
from vitrina_tasks.values import WrongValue, codec_for


def decoded(type_name, text):
    read = codec_for(type_name).decode
    return text if read is None else read(text)


class ValuesTest(unittest.TestCase):
    def test_values_are_exact_and_go_back_as_the_same_text(self):
        for type_name, text, value in [
            ("boolean", "t", True),
            ("smallint", "-32768", -32768),
            ("bigint", "9223372036854775807", 9223372036854775807),
            ("real", "0.1", 0.1),
            ("double precision", "-0.0", -0.0),
            ("double precision", "-Infinity", float("-inf")),
            ("numeric(30,10)", "12345678901234567890.1234567890", Decimal("12345678901234567890.1234567890")),
            ("numeric", "0.0000000000", Decimal("0E-10")),
            ("numeric", "100000", Decimal("1E5")),
            ("numeric", "Infinity", Decimal("Infinity")),
            ("timestamp(3) with time zone", "2024-02-29 23:59:59.999+00", "2024-02-29 23:59:59.999+00"),
            ("jsonb", '{"n": 12345678901234567890}', '{"n": 12345678901234567890}'),
            ("text[]", '{a,NULL,"NULL","","\\"\\\\"}', ["a", None, "NULL", "", '"\\']),
            ("numeric(5,2)[]", "{1.50,NULL}", [Decimal("1.50"), None]),
            ("varchar(3)[]", "{}", []),
            ("integer[]", "{{1,2},{3,4}}", "{{1,2},{3,4}}"),
            ("box[]", "{(1,1),(0,0);(2,2),(1,1)}", "{(1,1),(0,0);(2,2),(1,1)}"),
        ]:
            with self.subTest(type=type_name, text=text):
                self.assertEqual(decoded(type_name, text), value)
                self.assertEqual(codec_for(type_name).encode(value), text)

    def test_every_array_survives_the_way_there_and_back(self):
        letters = ["", "a", '"', "\\", "{", "}", ",", " ", "\n", "NULL", "null", "ё", "😀", "\u00a0"]
        chance = random.Random(1)
        for _ in range(2000):
            length = chance.randrange(5)
            array = [chance.choice([None, "".join(chance.choices(letters, k=3))]) for _ in range(length)]
            self.assertEqual(parse_array(format_array(array)), array)

    def test_every_double_survives_the_way_there_and_back(self):
        chance = random.Random(2)
        for _ in range(2000):
            number = chance.uniform(-1, 1) * 10 ** chance.randrange(-300, 300)
            self.assertEqual(float(codec_for("double precision").encode(number)), number)

    def test_wrong_values_are_refused(self):
        for type_name, value in [
            ("text", 5),
            ("text", "a\0"),
            ("text", "\ud83d"),
            ("boolean", 1),
            ("integer", 2**31),
            ("integer", 1.0),
            ("integer", True),
            ("bigint", "1"),
            ("double precision", "1"),
            ("double precision", True),
            ("numeric", "1"),
            ("jsonb", 5),
            ("jsonb", {"n": Decimal(1)}),
            ("jsonb", {"n": float("nan")}),
            ("text[]", "a"),
            ("text[]", [["a"]]),
            ("date", 20240101),
        ]:
            with self.subTest(type=type_name, value=value), self.assertRaises(WrongValue):
                codec_for(type_name).encode(value)

    def test_near_types_are_taken(self):
        class Index:  # as numpy's integers do
            def __index__(self):
                return 7

        for type_name, value, text in [
            ("integer", Index(), "7"),
            ("double precision", 3, "3.0"),
            ("numeric", 3, "3"),
            ("numeric", 0.1, "0.1"),
            ("numeric", float("nan"), "NaN"),
            ("jsonb", {"ё": [1, None]}, '{"ё": [1, null]}'),
            ("text[]", ("a", None), "{a,NULL}"),
        ]:
            with self.subTest(type=type_name):
                self.assertEqual(codec_for(type_name).encode(value), text)


if __name__ == "__main__":
    unittest.main()
