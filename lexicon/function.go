package lexicon

import "strings"

// functionWords are articles, prepositions, pronouns and auxiliaries: in a text
// of their language they never stand for a concept by themselves, and they tell
// that language. They are compiled into the table.
var functionWords = map[Langs]string{
	English: `a an the of to in on for and or is are was were be been by with from as at it its this that these those
my me i you your he she his her we our they them their do does did can could will would should may might must not no if
then than so what which who how when where why there here all any some have has had into about up out us am but
also very just more most such only own same both each other another because while until again between through during
without within across very please`,
	French: `le la les l un une des de du d et ou à au aux en dans par pour sur avec sans ce cet cette ces mon ma mes ton ta
tes son sa ses notre nos votre vos leur leurs je tu il elle on nous vous ils elles me te se lui y que qui quoi dont où est
sont suis ai as a avons avez ont veux voudrais peux ne pas plus s n m t c qu si tout tous toute toutes chez vers
cela ça ceci être avoir été fait comme mais donc car ni quand comment pourquoi quel quelle quels quelles aussi très
bien entre sous jusque depuis pendant avant après encore déjà moi toi eux celui celle ceux celles chaque aucun aucune
même peut pouvez pourrais pourriez voudrait va vais merci soit sera était etre`,
	German: `der die das den dem des ein eine einen einem einer eines und oder in im ins an am auf aus bei mit nach von vom zu
zum zur für über unter vor um durch ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch mein meine meinen meinem
meiner dein deine sein seine ist sind war bin hat habe haben wird werden kann kannst können will möchte soll nicht kein
keine als wie was wer wo wenn dass so auch alle alles man bitte da dann ab hoch herunter
sich allen allem aller etwas jemand diese dieser dieses diesem diesen welche welcher welches meines seine seinen
seiner ihre ihren ihrer ihrem unser unsere noch nur schon mal zwischen gegen ohne bis seit während weil ob sehr mehr
damit dazu davon dort hier jetzt immer wurde wurden worden werde hatte hatten könnte könntest möchtest willst wollen
muss müssen sollte darf aber denn doch sondern gerne danke hin her`,
	Spanish: `el la los las un una unos unas de del a al en y e o u por para con sin sobre entre mi mis tu tus su sus me te se nos
os le les lo que quien cual donde cuando como es son está están ser hay he ha han no si más muy ya yo él ella quiero puedo
puedes este esta estos estas ese esa todo todos toda todas desde hasta
ni pero porque aunque cuál cuáles también así aquí allí ahora otro otra otros otras mismo misma cada algún alguna
algunos algunas ningún nuestro nuestra esa esos esas aquel eso esto ello ellos ellas usted ustedes nosotros fue era
sido estoy puede podría podrías quisiera tengo tiene tienen hace debe antes después durante según gracias`,
	Italian: `il lo la i gli le l un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dalla dai dalle in
nel nella nei nelle su sul sulla sui sulle con per tra fra e ed o mi ti si ci vi ne che chi cui come dove quando è sono ho
ha hanno non più io tu lui lei noi voi loro mio mia miei mie tuo tua suo sua questo questa questi queste quello quella
vorrei voglio puoi tutti tutte tutto
ma se perché anche dove quali quale quanto altro altra altri altre ogni nostro nostra vostro essere stato era fa può
potrei potresti devo deve lì qui ancora già molto prima dopo durante senza grazie sia`,
	Portuguese: `o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas para com sem sobre entre e ou
que quem qual onde quando como é são está estão ser há não mais eu tu ele ela nós eles elas me te se lhe meu minha meus
minhas seu sua seus suas este esta estes estas esse essa isso ao à aos às quero posso pode todos todas
mas porque também assim aqui ali agora outro outra outros outras mesmo mesma cada algum alguma nenhum nosso nossa
aquele aquela aquilo você vocês foi era sido estou pode poderia gostaria tenho tem têm faz deve antes depois durante
até já muito obrigado`,
	Dutch: `de het een en of in op aan van voor met bij uit naar te tot om door over onder ik je jij u hij zij ze we wij mij me hem
haar ons mijn jouw uw zijn is was ben heb heeft hebben kan kun kunt wil zal niet geen wat wie waar hoe dat die dit deze
er als ook dan nog al alle maar
maar want omdat hoewel waarom welke ook zo hier daar nu ander andere elke elk enkele iets iemand niets ons onze hun
hen u wel nog veel meer meest tussen zonder tijdens sinds bent zou zouden moet moeten mag graag alsjeblieft worden
wordt werd`,
	Polish: `i a w we na z ze do od dla o po za przy przez pod nad przed oraz lub albo czy że jest są być był była mi mnie mój moja
moje moich ja ty on ona ono my wy oni ten ta to te tego tej tym tych się nie jak co kto gdzie kiedy który która które chcę
mogę możesz
ale bo ponieważ chociaż dlaczego gdy jeśli także też tylko bardzo więcej teraz tutaj tam inny inna inne każdy każda
każde żaden coś ktoś nic nam was wam ich jej jego im nią nim być bym byś może można trzeba proszę dziękuję między bez
podczas`,
	Turkish: `ve veya ile için bir bu şu o ben sen biz siz onlar bana sana beni de da ki mi mı mu mü ne nasıl nerede olan var yok
istiyorum misin mısın gibi kadar daha en çok her tüm
ama fakat çünkü eğer ben hangi kim neden niçin böyle şöyle burada orada şimdi başka her biri hiç şey olarak olan olsun
ise lütfen benim senin onun bizim sizin`,
	Indonesian: `yang di ke dari dan atau untuk pada dengan ini itu saya aku anda kamu kami kita dia mereka adalah ada tidak bisa akan
ingin mau apa siapa bagaimana mana dalam oleh sebuah para juga
tetapi karena jika kalau kenapa mengapa kapan begitu sini situ sana sekarang lain lainnya setiap sesuatu seseorang
telah sudah sedang masih lagi hanya sangat lebih agar supaya tolong mohon saja`,
	Danish: `den det de en et og eller i på til af for med fra ved om under over jeg du han hun vi I mig dig ham hende os dem min mit
mine din dit sin er var har have kan vil skal ikke som der hvad hvem hvor hvordan når at så men alle
men fordi hvis hvilken hvilket hvilke også her der nu anden andet andre hver nogle noget nogen ingen vores deres hans
hendes blive bliver blev været skulle kunne ville må meget mere mellem uden mens gerne tak`,
	Russian: `и в во не на я с со а то все всё она так его но да ты к у же вы за бы по ее её мне меня мной тебе тебя тобой ему ей
нам нас нами вам вас вами им их ими него неё нее ней нем нём них свой своя своё свои моя мой моё мое мои моего моей мою моих
твой твоя твои наш наша наши нашу ваш ваша ваши этот эта это эти этого этой эту этих тот та те того той ту тех что чего
чему чем кто кого кому как какой какая какое какие каких когда где куда откуда если или ли для до от из о об обо при про
без через был была было были быть есть нет уже еще ещё тоже только можно нужно надо очень там тут здесь`,
	Arabic: `في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن أنا انا أنت انت كان كانت يكون لا ما لم لن قد أن
إن أو ثم بعض غير بين عند حتى إذا كما لكن هل كيف متى لماذا ماذا أريد اريد لي لك له لها لنا`,
}

// functional are the languages of functionWords, of which those besides the
// Latin ones need no telling apart.
const functional = inLatin | Russian | Arabic

const (
	functionSeed   = 0x66756e63
	functionalWord = ID(maxConcepts) // is no concept
)

func (b *builder) functionWords() {
	for lang, code := range codes {
		words := functionWords[LangOf(code)]
		for w := range strings.FieldsSeq(words) {
			b.z.split(strings.ToLower(w))
			if len(b.z.atoms) == 1 {
				b.put(join(functionSeed, b.z.atoms[0].hash), functionalWord, lang, 255, true)
			}
		}
	}
}

// functionalIn returns the languages in which the word i is a function word.
func (m *matcher) functionalIn(i int) Langs {
	return m.langsOf(join(functionSeed, m.z.atoms[i].hash), functional)
}

// isFunctional reports whether the word i is a function word in a language that
// the text may be in.
func (m *matcher) isFunctional(i int) bool {
	return m.functionalIn(i)&(m.likely|functional&^inLatin) != 0
}
