package search

// Stop words: what a request is worded with, whatever it asks for. Function
// words first, then the courtesies in which people wrap what they want. They
// keep a small weight, so that one in the list too many does little harm.

const stopEnglish = `a an and are as at be been being but by can could did do does doing for from had has have having
he her here hers him his how i if in into is it its itself just let like may me might mine must my myself no nor not
now of off on once only or other our ours out over own s same shall she should so some such t than that the their
theirs them then there these they this those through to too under until up upon us very was we were what when where
which while who whom whose why will with would you your yours yourself about after again all also am any because
before below between both down during each few further more most above against across among within without d ll m re ve
don didn doesn isn aren wasn weren won wouldn couldn shouldn ain cannot
please thanks thank kindly hello hi hey wish gonna would maybe okay ok sure lets there any something someone thing
things one ones`

// politeEnglish are further stop words of English. Tools are named with them
// too, so a request that has no others is taken at its word.
const politeEnglish = `want wants wanted need needs needed looking help helps tell know try trying going able possible get got
give gives way use using used user system assistant`

const stopSpanish = `de la que el en y a los del se las por un para con no una su al lo como mas pero sus le ya o este si porque
esta entre cuando muy sin sobre tambien me hasta hay donde quien desde todo nos durante todos uno les ni contra otros
ese eso ante ellos e esto mi antes algunos unos yo otro otras otra tanto esa estos mucho quienes nada muchos cual poco
ella estar estas algunas algo nosotros mis tu te ti tus ellas es son soy eres somos ser fue era hay ha han he has
por favor quiero quisiera necesito puedes podrias puede podria ayuda ayudame dime dame gracias hola hacer hazme`

const stopFrench = `au aux avec ce ces dans de des du elle en et eux il ils je la le les leur leurs lui ma mais me meme mes moi mon
ne nos notre nous on ou où par pas pour qu que qui sa se ses si son sur ta te tes toi ton tu un une vos votre vous c d j l m n
s t y est sont suis es sommes etes etait etre ete ai as a avons avez ont avait cet cette comme plus tout tous toute
toutes quel quelle quels quelles comment quand dont ici sans sous entre vers chez
veux voudrais besoin peux pouvez pourriez peut aide aidez merci bonjour plait svp donne moi faire dis`

const stopGerman = `aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei bin
bis bist da damit dann das dass dein deine deinem deinen deiner dem den denn der des dich die dies diese diesem diesen
dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure für gegen hab habe haben
hat hatte hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes
jetzt kann kein keine können könnte man mein meine meinem meinen meiner mich mir mit muss nach nicht nichts noch nun nur
ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so soll sollte sondern über um und uns unser unsere unter vom
von vor war waren was weil welche welchem welchen welcher welches wenn werde werden wie wieder will wir wird wo
wollen wurde zu zum zur zwischen alle mal bitte danke möchte brauche hilf hilfe helfen gib zeig kannst könntest hallo
gerne machen`

const stopPortuguese = `de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das à seu sua ou quando
muito nos já eu também só pelo pela até isso ela entre depois sem mesmo aos seus quem nas me esse eles você essa num nem
suas meu às minha numa pelos elas qual nós lhe deles essas esses pelas este dele tu te vocês vos lhes meus minhas teu tua
nosso nossa dela delas esta estes estas aquele aquela isto aquilo estou está estamos estão é são era foi ser ter tem têm há
por favor quero queria preciso pode poderia ajuda ajude obrigado obrigada olá gostaria fazer dê me`

const stopItalian = `ad al allo ai agli all agl alla alle con col coi da dal dallo dai dagli dall dalla dalle di del dello dei degli dell
della delle in nel nello nei negli nell nella nelle su sul sullo sui sugli sull sulla sulle per tra contro io tu lui lei
noi voi loro mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra vostro mi ti ci vi lo la li le gli ne il un
uno una ma ed se perché anche come dov dove che chi cui non più quale quanto quanti quanta quante quello quelli quella
quelle questo questi questa queste si tutto tutti a c e i l o ho hai ha abbiamo hanno è sono sei siamo era essere
per favore vorrei voglio bisogno puoi potresti può aiuto aiutami grazie ciao dammi dimmi fare`

const stopDutch = `de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem dan zou of wat mijn
men dit zo door over ze zich bij ook tot je mij uit der daar haar naar heb hoe heeft hebben deze u want nog zal me zij nu
ge geen omdat iets worden toch al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja eens hier wie werd
altijd wordt wezen kunnen ons zelf tegen na reeds wil kon niets uw iemand andere welke waar
alsjeblieft alstublieft graag bedankt dank nodig kun kunt help hallo geef laat zien jij jouw`

const stopPolish = `a aby ale albo i ich ja jak jako je jego jej jest jestem już każdy kiedy kto która które którego której który których
lub ma mam mi mnie moja moje może można mój na nad nam nas nie nim o od oraz po pod poza przed przez przy się są ta tak także
tam te tego tej ten to tu tym tych ty u w we wszystkie wszystkich z za że ze do dla co czy by był była było być bez
proszę chcę chciałbym potrzebuję możesz pomóż dziękuję cześć mi daj`

const stopTurkish = `acaba ama ancak aslında az bana bazı belki ben beni benim bir biri birkaç birşey biz bize bu bunu bunun bütün çok
çünkü da daha de defa diye eğer en gibi hem hep hepsi her hiç için ile ise kez ki kim mı mi mu mü nasıl ne neden nerede
nereye niçin niye o olan olarak onu onun sanki sen siz şey şu tüm ve veya ya yani var
lütfen istiyorum ihtiyacım yardım teşekkürler merhaba bana misin mısın musun`

const stopIndonesian = `yang di dan ke dari ini itu dengan untuk pada adalah dalam tidak akan juga atau saya anda kami kita mereka dia
ada bisa dapat telah sudah oleh karena sebagai seperti agar jika kalau tapi tetapi namun semua para hanya lebih sangat
apa siapa bagaimana mana kapan sebuah suatu ku mu nya tolong mohon ingin mau perlu bantu terima kasih halo`

const stopSwedish = `och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då sin nu
har inte hans honom skulle hennes där min man ej vid kunde något från ut när efter upp vi dem vara vad över än dig kan
sina här ha mot alla under någon eller allt mycket sedan denna själv detta åt utan varit hur ingen mitt ni bli blev oss din
dessa några deras mina vilken er sådan vår blir vilket vill behöver snälla tack hjälp hej`

const stopDanish = `og i jeg det at en den til er som på de med han af for ikke der var mig sig men et har om vi min havde ham hun nu over
da fra du ud sin dem os op man hans hvor eller hvad skal selv her alle vil blev kunne ind når være dog noget ville jo
deres efter ned skulle denne end dette mit også under have dig anden hende mine alt meget sit sine vor mod disse hvis din
nogle hos blive mange ad bliver hendes været jer sådan venligst gerne tak hjælp hej`

const stopNorwegian = `og i jeg det at en et den til er som på de med han av ikke der så var meg seg men ett har om vi min mitt ha hadde hun
nå over da ved fra du ut sin dem oss opp man kan hans hvor eller hva skal selv her alle vil bli ble kunne inn når være
noe ville dere etter ned skulle denne for deg si sine sitt mot å meget hvorfor dette disse uten hvordan ingen din ditt
blir samme hvilken slik vår takk hjelp hei vennligst`

const stopFinnish = `olla olen on ovat oli olisi ei en että ja jos koska kuin mutta niin sekä tai vaan vai vaikka minä sinä hän me te he
minun sinun hänen minua tämä tuo se nämä nuo ne tämän sen mikä mitä kuka kun nyt myös vain kaikki joka jotka jonka
kanssa mukaan yli itse mukana haluan tarvitsen voitko kiitos hei auta ole hyvä`

const stopRomanian = `și si la de în in cu pe din pentru care este sunt nu că ca mai un o ai ale al a le lui prin dar sau fi fost era am are
au ce cum când unde acest această aceste acesta tot toate după fără despre eu tu el ea noi voi mă te se îmi vreau
trebuie poți puteți rog mulțumesc salut ajută`

const stopHungarian = `a az egy és is hogy nem van volt meg de ha már még csak mint vagy ez azt ezt mi ki mely amely minden itt ott le fel
be el én te ő mi ti ők kell lehet lesz fog után által szerint kérem kérlek szeretnék köszönöm segíts nekem`

const stopRussian = `и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня
еще нет о из ему теперь когда даже ну ли если уже или ни быть был него до вас нибудь вам ведь там потом себя ничего
ей может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет тогда кто
этот того потому этого какой ним здесь этом один мой тем чтобы нее сейчас были куда зачем всех можно при об хоть после
над больше тот через эти нас про всего них какая много моя свою этой перед лучше чуть том такой им более всю между это
пожалуйста хочу нужно нужен помоги помогите можешь спасибо привет дай`

const stopArabic = `في من على إلى عن مع هذا هذه ذلك تلك التي الذي هو هي هم نحن أنا أنت كان كانت يكون لا ما لم لن قد أن إن أو و ثم كل بعض
غير بين عند حتى إذا كما لكن هل كيف متى أين لماذا ماذا أريد أحتاج فضلك رجاء شكرا مرحبا يمكنك ساعدني لي`

const stopChinese = `的 了 是 我 你 他 她 它 们 在 把 被 和 与 及 或 就 都 也 很 到 给 请 帮 想 要 能 会 可 以 吗 呢 吧 个 这 那 些 有 对 从 为
之 其 将 里 下 上 中 一 我们 你们 可以 这个 那个 一个 一下 请帮 帮我 我想 我要 想要 需要 什么 怎么 怎样 如何 是否 哪些 哪个 里的 给我`

const stopJapanese = `の に は を が で と も へ や か な た て し れ さ い る う す ま あ こ そ り ら く ん お ください から まで です ます した する
して いる ある この その こと もの ため よう たい をして して てく くだ ださ さい れる たい`
